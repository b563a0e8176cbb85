"""Who was told once is kept until something changes that the answer rests on: not longer, and not shorter either."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.roles import Grant, Role, RoleScopes
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.tokens import Session, SigningKey
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount, User, membership_id
from remuda.identity.rbac.roles import role_id
from remuda.kernel.errors import Unauthenticated
from remuda.resources.conventions import NAME
from remuda.store.contract import named
from remuda.store.objects import Metadata
from tests.kit.identity.authenticator import Door, claim

COMPUTE = "unikorn-compute"
READS = RoleScopes(organization=(Grant(name="identity:groups", operations=("read",)),))


class Scene:
    """Somebody of each sort in one organization, and strangers in another."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.shown: dict[str, dict[str, Any]] = {}
        """What each of them shows."""

    async def set_up(self) -> None:
        door = self.door
        self.acme, self.other = await door.organization(), await door.organization("other")
        self.ann, self.eve = await door.user("ann@example.com", self.acme), await door.user("eve@example.com")
        await door.membership(self.eve, self.other)
        self.robot, self.alien = await door.account(self.acme), await door.account(self.other)
        self.own = await door.role("own", READS)
        self.group = await door.group(self.acme, "user", "own", users=[self.ann], accounts=[self.robot])
        self.theirs = await door.group(self.other, "user", users=[self.eve], accounts=[self.alien])
        self.project = await door.project(self.acme, self.group)
        self.their_project = await door.project(self.other, self.theirs)
        self.provider = await self.new_provider()
        token, self.session = await door.log_in(self.ann)
        issued = await door.tokens.sessions.begin(user=self.ann, client="console", provider=self.provider.name)
        federated = (await door.tokens.tokens.issue_for_session(self.ann, issued)).token.reveal()
        said = claim("ann@example.com", type="user", organization=self.acme)
        about_robot = claim(self.robot.name, type="service", organization=self.acme)
        service = await door.service_token(COMPUTE)
        self.shown = {
            "a user": {"token": token},
            "one whom a provider has let in": {"token": federated},
            "an account": {"token": await door.new_token(self.robot)},
            "a service": {"token": service},
            "a service for a user": {"token": service, "claim": said, "impersonate": True},
            "a service for an account": {"token": service, "claim": about_robot, "impersonate": True},
            "a certificate": {"certificate": door.certificate(COMPUTE), "claim": said},
            "a certificate for a user": {"certificate": door.certificate(COMPUTE), "claim": said, "impersonate": True},
        }
        self.token = token

    async def new_provider(self) -> OAuth2Provider:
        spec = OAuth2ProviderSpec(issuer="https://login.example")
        metadata = Metadata(name=self.door.new_id(), labels={NAME: "provider"})
        return await self.door.store.create(OAuth2Provider(metadata=metadata, spec=spec))

    async def answers(self, door: Door) -> dict[str, Principal | str]:
        """Return who each of them is, or why not."""
        return {name: await _answer(door, shown) for name, shown in self.shown.items()}

    async def warm_answers(self) -> dict[str, Principal | str]:
        """Return what is kept. Parts of kinds are told apart from the first question about them on."""
        await self.answers(self.door)
        for kind in self.door.store.registry.kinds:
            self.door.store.change_counter([named(kind.type, "")])
        return await self.answers(self.door)

    async def touch(self, kind: type[Any], name: str) -> None:
        """Write something that changes no rights."""
        found = await self.door.store.get(kind, name)
        labels = {**found.metadata.labels, "touched": str(found.version)}
        await self.door.store.update(replace(found, metadata=replace(found.metadata, labels=labels)))

    async def respec(self, kind: type[Any], name: str, **spec: Any) -> None:
        found = await self.door.store.get(kind, name)
        await self.door.store.update(replace(found, spec=replace(found.spec, **spec)))

    async def revoke(self, token: str) -> None:
        claims = await self.door.tokens.tokens.verify(token)
        await self.door.tokens.tokens.revoke(claims.jti, expires=claims.expires)


async def _answer(door: Door, shown: dict[str, Any]) -> Principal | str:
    try:
        return await door.let_in(**shown)
    except Unauthenticated as error:
        return error.message


Change = Callable[[Scene], Awaitable[object]]

OF_OTHERS: dict[str, Change] = {
    "somebody else logs in": lambda scene: scene.door.log_in(scene.eve),
    "somebody else is new": lambda scene: scene.door.user("new@example.com", scene.other),
    "another organization is made": lambda scene: scene.door.organization("third"),
    "another organization changes": lambda scene: scene.touch(Organization, scene.other),
    "another organization's project changes": lambda scene: scene.touch(Project, scene.their_project),
    "another organization's group changes": lambda scene: scene.respec(Group, scene.theirs, role_ids=()),
    "another organization's member is suspended": lambda scene: scene.respec(
        OrganizationUser, membership_id(scene.other, scene.eve.name), state="suspended"
    ),
    "another account has a new token": lambda scene: scene.door.new_token(scene.alien),
    "a project is made without our groups": lambda scene: scene.door.project(scene.acme),
    "a group is made without us": lambda scene: scene.door.group(scene.acme, "user"),
    "something else is revoked": lambda scene: scene.door.tokens.tokens.revoke(
        scene.door.new_id(), expires=scene.door.clock.now() + timedelta(hours=1)
    ),
}

OF_OURS: dict[str, Change] = {
    "the user is suspended": lambda scene: scene.door.suspend(scene.ann),
    "the user is gone": lambda scene: scene.door.remove(User, scene.ann.name),
    "the session is marked as ended": lambda scene: scene.respec(
        Session, scene.session.name, ended=scene.door.clock.now()
    ),
    "the session ends": lambda scene: scene.door.tokens.sessions.end(scene.session),
    "the token is revoked": lambda scene: scene.revoke(scene.token),
    "the session is revoked": lambda scene: scene.door.tokens.tokens.revoke(
        scene.session.name, expires=scene.door.clock.now() + timedelta(hours=1)
    ),
    "the provider is gone": lambda scene: scene.door.remove(OAuth2Provider, scene.provider.name),
    "the account has another token": lambda scene: scene.door.new_token(scene.robot),
    "the account is gone": lambda scene: scene.door.remove(ServiceAccount, scene.robot.name),
    "the organization is gone": lambda scene: scene.door.remove(Organization, scene.acme),
    "the membership is suspended": lambda scene: scene.respec(
        OrganizationUser, membership_id(scene.acme, scene.ann.name), state="suspended"
    ),
    "a membership is new": lambda scene: scene.door.membership(scene.ann, scene.other),
    "the group loses a role": lambda scene: scene.respec(Group, scene.group, role_ids=(role_id("own"),)),
    "the group loses everybody": lambda scene: scene.respec(Group, scene.group, user_ids=(), service_account_ids=()),
    "the group is gone": lambda scene: scene.door.remove(Group, scene.group),
    "a group is new": lambda scene: scene.door.group(
        scene.acme, "administrator", users=[scene.ann], accounts=[scene.robot]
    ),
    "a role changes": lambda scene: scene.respec(Role, scene.own.name, scopes=RoleScopes()),
    "a service's role changes": lambda scene: scene.respec(
        Role, role_id("compute-service"), scopes=RoleScopes(everywhere=READS.organization)
    ),
    "the project loses the group": lambda scene: scene.respec(Project, scene.project, group_ids=()),
    "a project is new": lambda scene: scene.door.project(scene.acme, scene.group),
    "the project is gone": lambda scene: scene.door.remove(Project, scene.project),
    "the keys are gone": lambda scene: scene.door.remove(SigningKey, "signing-keys"),
}


@pytest.mark.parametrize("change", OF_OTHERS.values(), ids=list(OF_OTHERS))
async def test_what_others_do_makes_nobody_read_again(authentication: Door, change: Change) -> None:
    scene = Scene(authentication)
    await scene.set_up()
    before = await scene.warm_answers()
    await change(scene)
    after = await scene.answers(authentication)
    assert [name for name in before if after[name] is not before[name]] == []


@pytest.mark.parametrize("change", OF_OURS.values(), ids=list(OF_OURS))
async def test_whatever_an_answer_rests_on_counts_with_the_next_request(authentication: Door, change: Change) -> None:
    scene = Scene(authentication)
    await scene.set_up()
    before = await scene.warm_answers()
    await change(scene)
    fresh = await scene.answers(Door(authentication.world, authentication.store, authentication.settings))
    assert fresh != before, "it makes a difference"
    assert await scene.answers(authentication) == fresh
