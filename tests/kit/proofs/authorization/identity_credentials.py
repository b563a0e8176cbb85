"""The callers of identity's matrix in flesh and blood: members, groups, accounts, and real credentials for each."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.authentication import read_credentials
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization, Project, ProjectSpec
from remuda.identity.kinds.users import User, user_id
from remuda.resources.conventions import NAME
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.store.objects import Metadata
from tests.kit.certificates import certificate_proxies
from tests.kit.identity.environment import LOOKER, ROOT, Account, IdentityEnvironment
from tests.kit.identity.service_credentials import certified
from tests.kit.proofs.authorization.identity_callers import CALLERS
from tests.kit.proofs.authorization.matrix import ABROAD, HOME, NEXT_DOOR, PLACES, Caller, Scope

_HERE, _THERE = HOME.organization, ABROAD.organization
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "suspended": ("administrators",),
    "expired": ("administrators",),
    "revoked": ("administrators",),
    "forged": ("administrators",),
    "member": (),
    "administrator": ("administrators",),
    "auditor": ("auditors",),
    "user": ("users",),
    "reader": ("readers",),
    "neighbour": ("neighbours",),
    "reader here and administrator there": ("readers",),
}
"""Who is in which groups of the home organization."""
_FOREIGNERS = ("foreigner", "reader here and administrator there")


class IdentityCredentials:
    """What everybody shows to get in."""

    def __init__(self, identity: IdentityEnvironment) -> None:
        self.identity = identity
        self.groups: dict[Scope, tuple[str, ...]] = {}
        """The groups that each project lists."""
        self.tokens: dict[str, str] = {}
        self.accounts: dict[str, Account] = {}

    def headers(self, caller: Caller) -> Mapping[str, str]:
        """Return what a caller sends to say who it is; a service's certificate comes from the proxy in front."""
        if caller.own is not None:
            now = self.identity.clock.now()
            return certified(caller.own.name, self._claim(caller), impersonates=caller.impersonates, now=now)
        if caller.name == "anonymous":
            return {}
        return {"authorization": f"Bearer {self.tokens[caller.name]}"}

    async def principal(self, caller: Caller) -> Principal:
        """Return a caller as a service in the same process meets it."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers(caller).items()]
        credentials = read_credentials(
            dict(headers),
            all_headers=headers,
            peer="127.0.0.1",
            proxies=certificate_proxies(),
            clock=self.identity.clock,
        )
        return await self.identity.app.authenticator.authenticate(credentials)

    def _claim(self, caller: Caller) -> Mapping[str, Any]:
        if caller.acts_for in self.accounts:
            return {"actor": self.accounts[caller.acts_for].id, "type": "service"}
        return {"actor": subject_of(caller.acts_for), "type": "user"}


def subject_of(name: str) -> str:
    """Return the address of a caller that is a user."""
    fixed = {"platform-administrator": ROOT, "platform-reader": LOOKER}
    return fixed.get(name) or f"{name.replace(' ', '.')}@example.com"


async def furnish(identity: IdentityEnvironment) -> IdentityCredentials:
    """Make organizations, projects and everybody."""
    credentials = IdentityCredentials(identity)
    for organization in (_HERE, _THERE):
        metadata = Metadata(name=organization, labels={NAME: "organization"})
        await identity.store.create(Organization(metadata=metadata))
    groups = {
        "administrators": await identity.group(_HERE, "administrator"),
        "auditors": await identity.group(_HERE, "auditor"),
        "users": await identity.group(_HERE, "user"),
        "readers": await identity.group(_HERE, "reader"),
        "neighbours": await identity.group(_HERE, "user"),
    }
    abroad = await identity.group(_THERE, "administrator")
    credentials.groups = {
        HOME: (groups["users"], groups["readers"]),
        NEXT_DOOR: (groups["neighbours"],),
        ABROAD: (abroad,),
    }
    for place in PLACES:
        await _make_project(identity, place, credentials.groups[place])
    for name, inside in _MEMBERS.items():
        await identity.user(subject_of(name), _HERE, *(groups[each] for each in inside))
    for name in _FOREIGNERS:
        await identity.user(subject_of(name), _THERE, abroad)
    await identity.user(subject_of("without sessions"), _HERE)
    await identity.user(subject_of("suspended here"), _HERE, groups["administrators"], state="suspended")
    credentials.accounts = {
        "account": await identity.account(_HERE, groups["users"]),
        "administrating account": await identity.account(_HERE, groups["administrators"]),
        "foreign account": await identity.account(_THERE, abroad),
        "idle account": await identity.account(_HERE),
    }
    await _hand_out(credentials)
    return credentials


async def _make_project(identity: IdentityEnvironment, scope: Scope, groups: tuple[str, ...]) -> None:
    owner = ORGANIZATION.owner(await identity.store.get(Organization, scope.organization))
    metadata = Metadata(
        name=scope.project,
        labels={NAME: "project", ORGANIZATION_LABEL: scope.organization},
        owner_references=(owner,),
    )
    await identity.store.create(Project(metadata=metadata, spec=ProjectSpec(group_ids=groups)))


async def _hand_out(credentials: IdentityCredentials) -> None:
    """Give everybody a token, and then see to it that some are not good."""
    identity = credentials.identity
    for caller in CALLERS:
        if caller.sort == "user" and caller.name != "anonymous":
            credentials.tokens[caller.name] = await identity.log_in(subject_of(caller.name))
    credentials.tokens |= {name: account.token for name, account in credentials.accounts.items()}
    credentials.tokens["unikorn-region by assertion"] = await identity.service_token("unikorn-region")
    head, claims, _ = credentials.tokens["administrator"].split(".")
    credentials.tokens["forged"] = f"{head}.{claims}.{credentials.tokens['forged'].split('.')[2]}"
    expired = await identity.store.get(User, user_id(subject_of("expired")))
    issued = await identity.app.tokens.tokens.issue_for_operator(
        expired, operator="test", lifetime=timedelta(minutes=-1)
    )
    credentials.tokens["expired"] = issued.token.reveal()
    await identity.app.tokens.sessions.end_all(user_id(subject_of("revoked")))
    suspended = await identity.store.get(User, user_id(subject_of("suspended")))
    await identity.store.update(replace(suspended, spec=replace(suspended.spec, state="suspended")))
