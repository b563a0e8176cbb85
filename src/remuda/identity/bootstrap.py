"""The first start: an administrator, an organization with a project, and a service account for scripts.

It happens once in the life of a store, before the first request is answered. A record in the store (`Bootstrap`) draws
the ids of everything before any of it is made, and is closed at the very end. Until then every start goes through all
of it again: what is there already stays, and what can only be shown once (the password, the token) is made anew, since
nobody can have used the earlier ones yet. So a crash anywhere costs nothing but another start. Once it is closed,
nothing is made again, whoever removes it.

Later starts look after `credentials.json` alone. Its token is renewed if it is still the account's own and no longer
good, because it has ended or because clients now reach us at another address. What else it says is made what is so now:
where the services are, and what a small server is made of.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.credentials import Credentials, CredentialsFile, SmallServer
from remuda.identity.kinds.tenancy import Bootstrap, BootstrapSpec, BootstrapStatus, Organization
from remuda.identity.kinds.users import ServiceAccount, user_id
from remuda.identity.login.passwords import Passwords, check_password
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.ports import Aside
from remuda.identity.rbac.roles import role_id
from remuda.identity.tenancy.rules import new_organization, new_project
from remuda.identity.tenancy.schema import OrganizationSpecWire, OrganizationWrite, ProjectSpecWire, ProjectWrite
from remuda.identity.tokens.secrets import is_hash_of
from remuda.identity.tokens.service import Issued, Tokens
from remuda.identity.users import groups as group_rules
from remuda.identity.users import rules
from remuda.identity.users.schema import GroupSpecWire, GroupWrite
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, NotFound, Unauthenticated
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import retry_on_conflict
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.objects import Metadata, ResourceT

_NAME = "first-start"
_WHO = "remuda"
_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_GROUPS, _GROUP_LENGTH = 4, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapSettings:
    """What an operator can choose about it."""

    administrator: str = "admin@remuda.local"
    """The first user's e-mail address; the configuration makes it a platform administrator."""
    password: Secret | None = None
    """The first user's password, unless a random one is to be made."""
    organization: str = "default"
    project: str = "default"


def check_bootstrap(settings: BootstrapSettings) -> None:
    """Refuse a password that nobody could be given."""
    if settings.password is not None:
        check_password(settings.password, settings.administrator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """What is told once: how to log in."""

    page: str
    """Where people log in."""
    administrator: str
    password: Secret | None
    """None if it is the configuration's."""
    credentials: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStart:
    """What the first start needs, and later ones for `credentials.json`."""

    store: Store
    clock: Clock
    randomness: Randomness
    aside: Aside
    tokens: Tokens
    passwords: Passwords
    settings: BootstrapSettings
    credentials: CredentialsFile
    endpoint: str
    """Where clients reach identity."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Where they reach the other services, by name."""
    small: SmallServer | None = None
    """What a small server can be made of."""

    async def run(self, tell: Callable[[Welcome], None]) -> None:
        """Make everything if this is the first start, and call `tell` when it is there."""
        record = await self._record()
        if record.status.finished is not None:
            await self._look_after_credentials(record.spec)
            return
        await self._make_everything(record.spec)
        password = self.settings.password or self._random_password()
        administrator = self.settings.administrator
        await self.passwords.set_password(user_id(administrator), password)
        shown = None if self.settings.password is not None else password
        tell(
            Welcome(
                page=f"{self.endpoint}{ACCOUNT}",
                administrator=administrator,
                password=shown,
                credentials=self.credentials.path,
            )
        )
        await self.store.update_status(replace(record, status=BootstrapStatus(finished=self.clock.now())))

    async def has_lost_credentials(self) -> bool:
        """Tell whether `credentials.json` is gone and the account that it was for is not: no start writes it again."""
        if await self.aside(self.credentials.read) is not None:
            return False
        try:
            await self.store.get(ServiceAccount, (await self._record()).spec.service_account)
        except NotFound:
            return False
        return True

    async def _record(self) -> Bootstrap:
        try:
            return await self.store.get(Bootstrap, _NAME)
        except NotFound:
            ids = {name: random_id(self.randomness) for name in BootstrapSpec.__struct_fields__}
            return await self._made(Bootstrap(metadata=Metadata(name=_NAME), spec=BootstrapSpec(**ids)))

    async def _make_everything(self, ids: BootstrapSpec) -> None:
        """Make members before the groups that name them, and groups before the project that names those."""
        subject, by = self.settings.administrator, _who(ids.organization)
        organization = await self._made(new_organization(ids.organization, _organization(self.settings), by))
        await self._made(rules.new_user(subject, (), by))
        membership = await self._made(rules.new_membership(organization, subject, "active", by))
        await self._make_account(ids, organization)
        people = {membership.name: subject}
        await self._make_group(ids.administrators, organization, "administrators", "administrator", ids, people)
        await self._make_group(ids.users, organization, "users", "user", ids, {})
        wanted = ProjectWrite(
            metadata=MetadataWrite(name=self.settings.project), spec=ProjectSpecWire(group_ids=(ids.users,))
        )
        await self._made(new_project(ids.project, organization, wanted, by))

    async def _make_group(
        self,
        name: str,
        organization: Organization,
        called: str,
        role: str,
        ids: BootstrapSpec,
        people: dict[str, str],
    ) -> None:
        spec = GroupSpecWire(role_ids=(role_id(role),), service_account_ids=(ids.service_account,))
        wanted = GroupWrite(metadata=MetadataWrite(name=called), spec=spec)
        roster = group_rules.roster(wanted, people, ())
        await self._made(group_rules.new_group(name, organization, wanted, roster, _who(organization.name)))

    async def _make_account(self, ids: BootstrapSpec, organization: Organization) -> None:
        wanted = MetadataWrite(name="scripts", description="For scripts on this machine: see credentials.json.")

        async def store_it(issued: Issued) -> None:
            by = _who(organization.name)
            new = rules.new_account(ids.service_account, organization, wanted, issued, by, claim=None)
            try:
                await self.store.create(new)
            except AlreadyExists:
                await self._rotate(ids.service_account, issued)

        await self._issue(ids, store_it)

    async def _look_after_credentials(self, ids: BootstrapSpec) -> None:
        try:
            account = await self.store.get(ServiceAccount, ids.service_account)
        except NotFound:
            return
        staged = await self.aside(self.credentials.read_staged)
        if staged is not None and is_hash_of(account.spec.access_token, staged.token.reveal()):
            await self.aside(self.credentials.publish)
        await self.aside(self.credentials.drop_staged)
        there = await self.aside(self.credentials.read)
        if there is None or not is_hash_of(account.spec.access_token, there.token.reveal()):
            return
        if not await self._is_good(there.token):
            await self._issue(ids, lambda issued: self._rotate(account.name, issued))
        elif (now := self._as_it_is(there)) != there:
            await self._write(now)

    async def _is_good(self, token: Secret) -> bool:
        try:
            await self.tokens.verify(token.reveal())
        except Unauthenticated:
            return False
        return True

    async def _issue(self, ids: BootstrapSpec, store_it: Callable[[Issued], Awaitable[None]]) -> None:
        issued = await self.tokens.issue_for_account(ids.service_account, ids.organization)
        new = Credentials(endpoints={}, token=issued.token, organization_id=ids.organization, project_id=ids.project)
        await self.aside(lambda: self.credentials.stage(self._as_it_is(new)))
        await store_it(issued)
        await self.aside(self.credentials.publish)

    async def _write(self, credentials: Credentials) -> None:
        await self.aside(lambda: self.credentials.stage(credentials))
        await self.aside(self.credentials.publish)

    def _as_it_is(self, credentials: Credentials) -> Credentials:
        """Return them with where the services are now, and what a small server is made of now."""
        small = {} if self.small is None else msgspec.structs.asdict(self.small)
        nothing = dict.fromkeys(SmallServer.__struct_fields__)
        return replace(credentials, endpoints={"identity": self.endpoint, **self.others}, **{**nothing, **small})

    async def _rotate(self, name: str, issued: Issued) -> None:
        async def write() -> None:
            account = await self.store.get(ServiceAccount, name)
            await self.store.update(rules.rotated(account, issued, _WHO, self.clock.now()))

        await retry_on_conflict(write)

    async def _made(self, wanted: ResourceT) -> ResourceT:
        try:
            return await self.store.create(wanted)
        except AlreadyExists:
            return await self.store.get(type(wanted), wanted.name)

    def _random_password(self) -> Secret:
        letters = [_LETTERS[self.randomness.randrange(len(_LETTERS))] for _ in range(_GROUPS * _GROUP_LENGTH)]
        groups = ["".join(letters[at : at + _GROUP_LENGTH]) for at in range(0, len(letters), _GROUP_LENGTH)]
        return Secret("-".join(groups))


def _who(organization: str) -> Principal:
    """Return ourselves, with the first organization as the one that pays."""
    return Principal(subject=_WHO, type="system", organization=organization)


def _organization(settings: BootstrapSettings) -> OrganizationWrite:
    return OrganizationWrite(
        metadata=MetadataWrite(name=settings.organization), spec=OrganizationSpecWire(organization_type="adhoc")
    )
