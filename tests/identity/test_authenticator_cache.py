"""Who was told once is kept until something changes that the answer rests on: not longer, and not shorter either."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.tokens import Session, SigningKey
from remuda.identity.kinds.users import (
    Grant,
    Group,
    OrganizationUser,
    Role,
    RoleScopes,
    ServiceAccount,
    User,
    membership_id,
)
from remuda.identity.rbac.roles import role_id
from remuda.kernel.errors import Unauthenticated
from remuda.resources.conventions import NAME
from remuda.store.contract import named
from remuda.store.objects import Metadata
from tests.kit.identity.authenticator import AuthenticatorEnvironment, claim

COMPUTE = "unikorn-compute"
READS = RoleScopes(organization=(Grant(name="identity:groups", operations=("read",)),))


class Scene:
    """Somebody of each sort in one organization, and strangers in another."""

    def __init__(self, environment: AuthenticatorEnvironment) -> None:
        self.environment = environment
        self.shown: dict[str, dict[str, Any]] = {}
        """What each of them shows."""

    async def set_up(self) -> None:
        authentication = self.environment
        self.acme, self.other = await authentication.organization(), await authentication.organization("other")
        self.ann, self.eve = (
            await authentication.user("ann@example.com", self.acme),
            await authentication.user("eve@example.com"),
        )
        await authentication.membership(self.eve, self.other)
        self.robot, self.alien = await authentication.account(self.acme), await authentication.account(self.other)
        self.own = await authentication.role("own", READS)
        self.group = await authentication.group(self.acme, "user", "own", users=[self.ann], accounts=[self.robot])
        self.theirs = await authentication.group(self.other, "user", users=[self.eve], accounts=[self.alien])
        self.project = await authentication.project(self.acme, self.group)
        self.their_project = await authentication.project(self.other, self.theirs)
        self.provider = await self.new_provider()
        token, self.session = await authentication.log_in(self.ann)
        issued = await authentication.tokens.sessions.begin(
            user=self.ann, client="console", provider=self.provider.name
        )
        federated = (await authentication.tokens.tokens.issue_for_session(self.ann, issued)).token.reveal()
        said = claim("ann@example.com", type="user", organization=self.acme)
        about_robot = claim(self.robot.name, type="service", organization=self.acme)
        service = await authentication.service_token(COMPUTE)
        self.shown = {
            "a user": {"token": token},
            "one whom a provider has let in": {"token": federated},
            "an account": {"token": await authentication.new_token(self.robot)},
            "a service": {"token": service},
            "a service for a user": {"token": service, "claim": said, "impersonate": True},
            "a service for an account": {"token": service, "claim": about_robot, "impersonate": True},
            "a certificate": {"certificate": authentication.certificate(COMPUTE), "claim": said},
            "a certificate for a user": {
                "certificate": authentication.certificate(COMPUTE),
                "claim": said,
                "impersonate": True,
            },
        }
        self.token = token

    async def new_provider(self) -> OAuth2Provider:
        spec = OAuth2ProviderSpec(issuer="https://login.example")
        metadata = Metadata(name=self.environment.new_id(), labels={NAME: "provider"})
        return await self.environment.store.create(OAuth2Provider(metadata=metadata, spec=spec))

    async def answers(self, authentication: AuthenticatorEnvironment) -> dict[str, Principal | str]:
        """Return who each of them is, or why not."""
        return {name: await _answer(authentication, shown) for name, shown in self.shown.items()}

    async def warm_answers(self) -> dict[str, Principal | str]:
        """Return what is kept. Parts of kinds are told apart from the first question about them on."""
        await self.answers(self.environment)
        for kind in self.environment.store.registry.kinds:
            self.environment.store.change_counter([named(kind.type, "")])
        return await self.answers(self.environment)

    async def touch(self, kind: type[Any], name: str) -> None:
        """Write something that changes no permissions."""
        found = await self.environment.store.get(kind, name)
        labels = {**found.metadata.labels, "touched": str(found.version)}
        await self.environment.store.update(replace(found, metadata=replace(found.metadata, labels=labels)))

    async def respec(self, kind: type[Any], name: str, **spec: Any) -> None:
        found = await self.environment.store.get(kind, name)
        await self.environment.store.update(replace(found, spec=replace(found.spec, **spec)))

    async def revoke(self, token: str) -> None:
        claims = await self.environment.tokens.tokens.verify(token)
        await self.environment.tokens.tokens.revoke(claims.jti, expires=claims.expires)


async def _answer(authentication: AuthenticatorEnvironment, shown: dict[str, Any]) -> Principal | str:
    try:
        return await authentication.let_in(**shown)
    except Unauthenticated as error:
        return error.message


Change = Callable[[Scene], Awaitable[object]]

OF_OTHERS: dict[str, Change] = {
    "somebody else logs in": lambda scene: scene.environment.log_in(scene.eve),
    "somebody else is new": lambda scene: scene.environment.user("new@example.com", scene.other),
    "another organization is made": lambda scene: scene.environment.organization("third"),
    "another organization changes": lambda scene: scene.touch(Organization, scene.other),
    "another organization's project changes": lambda scene: scene.touch(Project, scene.their_project),
    "another organization's group changes": lambda scene: scene.respec(Group, scene.theirs, role_ids=()),
    "another organization's member is suspended": lambda scene: scene.respec(
        OrganizationUser, membership_id(scene.other, scene.eve.name), state="suspended"
    ),
    "another account has a new token": lambda scene: scene.environment.new_token(scene.alien),
    "a project is made without our groups": lambda scene: scene.environment.project(scene.acme),
    "a group is made without us": lambda scene: scene.environment.group(scene.acme, "user"),
    "something else is revoked": lambda scene: scene.environment.tokens.tokens.revoke(
        scene.environment.new_id(), expires=scene.environment.clock.now() + timedelta(hours=1)
    ),
}

OF_OURS: dict[str, Change] = {
    "the user is suspended": lambda scene: scene.environment.suspend(scene.ann),
    "the user is gone": lambda scene: scene.environment.remove(User, scene.ann.name),
    "the session is marked as ended": lambda scene: scene.respec(
        Session, scene.session.name, ended=scene.environment.clock.now()
    ),
    "the session ends": lambda scene: scene.environment.tokens.sessions.end(scene.session),
    "the token is revoked": lambda scene: scene.revoke(scene.token),
    "the session is revoked": lambda scene: scene.environment.tokens.tokens.revoke(
        scene.session.name, expires=scene.environment.clock.now() + timedelta(hours=1)
    ),
    "the provider is gone": lambda scene: scene.environment.remove(OAuth2Provider, scene.provider.name),
    "the account has another token": lambda scene: scene.environment.new_token(scene.robot),
    "the account is gone": lambda scene: scene.environment.remove(ServiceAccount, scene.robot.name),
    "the organization is gone": lambda scene: scene.environment.remove(Organization, scene.acme),
    "the membership is suspended": lambda scene: scene.respec(
        OrganizationUser, membership_id(scene.acme, scene.ann.name), state="suspended"
    ),
    "a membership is new": lambda scene: scene.environment.membership(scene.ann, scene.other),
    "the group loses a role": lambda scene: scene.respec(Group, scene.group, role_ids=(role_id("own"),)),
    "the group loses everybody": lambda scene: scene.respec(Group, scene.group, user_ids=(), service_account_ids=()),
    "the group is gone": lambda scene: scene.environment.remove(Group, scene.group),
    "a group is new": lambda scene: scene.environment.group(
        scene.acme, "administrator", users=[scene.ann], accounts=[scene.robot]
    ),
    "a role changes": lambda scene: scene.respec(Role, scene.own.name, scopes=RoleScopes()),
    "a service's role changes": lambda scene: scene.respec(
        Role, role_id("compute-service"), scopes=RoleScopes(everywhere=READS.organization)
    ),
    "the project loses the group": lambda scene: scene.respec(Project, scene.project, group_ids=()),
    "a project is new": lambda scene: scene.environment.project(scene.acme, scene.group),
    "the project is gone": lambda scene: scene.environment.remove(Project, scene.project),
    "the keys are gone": lambda scene: scene.environment.remove(SigningKey, "signing-keys"),
}


@pytest.mark.parametrize("change", OF_OTHERS.values(), ids=list(OF_OTHERS))
async def test_what_others_do_makes_nobody_read_again(authentication: AuthenticatorEnvironment, change: Change) -> None:
    scene = Scene(authentication)
    await scene.set_up()
    before = await scene.warm_answers()
    await change(scene)
    after = await scene.answers(authentication)
    assert [name for name in before if after[name] is not before[name]] == []


@pytest.mark.parametrize("change", OF_OURS.values(), ids=list(OF_OURS))
async def test_whatever_an_answer_rests_on_counts_with_the_next_request(
    authentication: AuthenticatorEnvironment, change: Change
) -> None:
    scene = Scene(authentication)
    await scene.set_up()
    before = await scene.warm_answers()
    await change(scene)
    fresh = await scene.answers(
        AuthenticatorEnvironment(authentication.world, authentication.store, authentication.settings)
    )
    assert fresh != before, "it makes a difference"
    assert await scene.answers(authentication) == fresh
