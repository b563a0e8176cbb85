"""The callers of identity's matrix in flesh and blood: members, groups, accounts, and real credentials for each."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.authentication import TrustedProxies, read_credentials
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization, Project, ProjectSpec
from remuda.identity.kinds.users import User, user_id
from remuda.resources import conventions as labels
from remuda.store.objects import Metadata
from tests.kit.identity.launch import LOOKER, ROOT, Account, House
from tests.kit.identity.service_credentials import certified
from tests.kit.proofs.authorization.identity_callers import CALLERS
from tests.kit.proofs.authorization.matrix import ABROAD, HOME, NEXT_DOOR, PLACES, Caller, Place

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


class Gate:
    """What everybody shows to get in."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.groups: dict[Place, tuple[str, ...]] = {}
        """The groups that each project lists."""
        self.tokens: dict[str, str] = {}
        self.accounts: dict[str, Account] = {}

    def headers(self, caller: Caller) -> Mapping[str, str]:
        """Return what a caller sends to say who it is; a service's certificate comes from the proxy in front."""
        if caller.own is not None:
            now = self.house.clock.now()
            return certified(caller.own.name, self._claim(caller), impersonates=caller.impersonates, now=now)
        if caller.name == "anonymous":
            return {}
        return {"authorization": f"Bearer {self.tokens[caller.name]}"}

    async def principal(self, caller: Caller) -> Principal:
        """Return a caller as a service in the same process meets it."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers(caller).items()]
        credentials = read_credentials(
            dict(headers), all_headers=headers, peer="127.0.0.1", proxies=TrustedProxies(["127.0.0.1/32"])
        )
        return await self.house.app.authenticator.authenticate(credentials)

    def _claim(self, caller: Caller) -> Mapping[str, Any]:
        if caller.acts_for in self.accounts:
            return {"actor": self.accounts[caller.acts_for].id, "type": "service"}
        return {"actor": subject_of(caller.acts_for), "type": "user"}


def subject_of(name: str) -> str:
    """Return the address of a caller that is a user."""
    fixed = {"platform-administrator": ROOT, "platform-reader": LOOKER}
    return fixed.get(name) or f"{name.replace(' ', '.')}@example.com"


async def furnish(house: House) -> Gate:
    """Make organizations, projects and everybody."""
    gate = Gate(house)
    for organization in (_HERE, _THERE):
        metadata = Metadata(name=organization, labels={labels.NAME: "organization"})
        await house.store.create(Organization(metadata=metadata))
    groups = {
        "administrators": await house.group(_HERE, "administrator"),
        "auditors": await house.group(_HERE, "auditor"),
        "users": await house.group(_HERE, "user"),
        "readers": await house.group(_HERE, "reader"),
        "neighbours": await house.group(_HERE, "user"),
    }
    abroad = await house.group(_THERE, "administrator")
    gate.groups = {HOME: (groups["users"], groups["readers"]), NEXT_DOOR: (groups["neighbours"],), ABROAD: (abroad,)}
    for place in PLACES:
        await _make_project(house, place, gate.groups[place])
    for name, inside in _MEMBERS.items():
        await house.user(subject_of(name), _HERE, *(groups[each] for each in inside))
    for name in _FOREIGNERS:
        await house.user(subject_of(name), _THERE, abroad)
    await house.user(subject_of("suspended here"), _HERE, groups["administrators"], state="suspended")
    gate.accounts = {
        "account": await house.account(_HERE, groups["users"]),
        "administrating account": await house.account(_HERE, groups["administrators"]),
        "foreign account": await house.account(_THERE, abroad),
        "idle account": await house.account(_HERE),
    }
    await _hand_out(gate)
    return gate


async def _make_project(house: House, place: Place, groups: tuple[str, ...]) -> None:
    owner = ORGANIZATION.owner(await house.store.get(Organization, place.organization))
    metadata = Metadata(
        name=place.project,
        labels={labels.NAME: "project", labels.ORGANIZATION: place.organization},
        owner_references=(owner,),
    )
    await house.store.create(Project(metadata=metadata, spec=ProjectSpec(group_ids=groups)))


async def _hand_out(gate: Gate) -> None:
    """Give everybody a token, and then see to it that some are not good."""
    house = gate.house
    for caller in CALLERS:
        if caller.sort == "user" and caller.name != "anonymous":
            gate.tokens[caller.name] = await house.log_in(subject_of(caller.name))
    gate.tokens |= {name: account.token for name, account in gate.accounts.items()}
    gate.tokens["unikorn-region by assertion"] = await house.service_token("unikorn-region")
    head, claims, _ = gate.tokens["administrator"].split(".")
    gate.tokens["forged"] = f"{head}.{claims}.{gate.tokens['forged'].split('.')[2]}"
    expired = await house.store.get(User, user_id(subject_of("expired")))
    issued = await house.app.tokens.tokens.issue_for_operator(expired, operator="test", life=timedelta(minutes=-1))
    gate.tokens["expired"] = issued.token.reveal()
    await house.app.tokens.sessions.end_all(user_id(subject_of("revoked")))
    suspended = await house.store.get(User, user_id(subject_of("suspended")))
    await house.store.update(replace(suspended, spec=replace(suspended.spec, state="suspended")))
