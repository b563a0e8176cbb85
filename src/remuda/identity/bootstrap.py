"""Bootstrap: creation of the administrator, organization, project and service account at the first start.

It runs once in the life of a store, before the first request is served. A `Bootstrap` record has the ids of all objects
before any of them is created, and is finished at the end. Until then every start repeats all steps: existing objects
stay, and the password and the token, which are shown only once, are created again. So a crash costs nothing but another
start. Once finished, nothing is created again.

Later starts only update `credentials.json`: its token is renewed if it is still the account's own and no longer valid,
and endpoints and example instance are brought up to date.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.credentials import Credentials, CredentialsFile, ExampleInstance
from remuda.identity.kinds.tenancy import Bootstrap, BootstrapSpec, BootstrapStatus, Organization
from remuda.identity.kinds.users import ServiceAccount, user_id
from remuda.identity.login.passwords import Passwords, check_length
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.rbac.roles import role_id
from remuda.identity.tenancy.rules import new_organization, new_project
from remuda.identity.tenancy.schema import OrganizationSpecWire, OrganizationWrite, ProjectSpecWire, ProjectWrite
from remuda.identity.tokens.secrets import is_hash_of
from remuda.identity.tokens.service import Issued, Tokens
from remuda.identity.users import groups as group_rules
from remuda.identity.users import rules
from remuda.identity.users.schema import GroupSpecWire, GroupWrite
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Unauthenticated
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import organization_of
from remuda.resources.crud import ensure, exists, find, retry_on_conflict
from remuda.resources.schema import MetadataWrite
from remuda.service import RunBlocking
from remuda.store.contract import Store
from remuda.store.objects import Metadata

_NAME = "bootstrap"
_ACTOR = "remuda"
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_GROUP_COUNT, _GROUP_LENGTH = 4, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapSettings:
    """Settings of the bootstrap."""

    administrator: str = "admin@remuda.local"
    """E-mail address of the first user, whom the configuration makes a platform administrator."""
    password: Secret | None = None
    """First password of the first user, unless a random one is to be generated. Either is temporary."""
    organization: str = "default"
    project: str = "default"


def check_bootstrap(settings: BootstrapSettings) -> None:
    """Raise Invalid if the configured password is too short or too long. Whether it is common is told at the start."""
    if settings.password is not None:
        check_length(settings.password)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLogin:
    """Message of the first start: how to log in."""

    page: str
    administrator: str
    password: Secret | None
    """None if the configuration has it."""
    credentials: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapRun:
    """Bootstrap at the first start, and update of `credentials.json` at later ones."""

    store: Store
    clock: Clock
    randomness: Randomness
    run_blocking: RunBlocking
    tokens: Tokens
    passwords: Passwords
    settings: BootstrapSettings
    credentials: CredentialsFile
    endpoint: str
    others: Mapping[str, str] = field(default_factory=dict)
    """URLs of the other services, by name."""
    example_instance: ExampleInstance | None = None
    """Region, flavor and image of an example instance."""

    async def run(self, report: Callable[[FirstLogin], None]) -> None:
        """Create all objects if this is the first start, and then call `report`."""
        record = await self._record()
        if record.status.finished is not None:
            await self._refresh_credentials(record.spec)
            return
        await self._check_password()
        await self._create_all(record.spec)
        password = self.settings.password or self._random_password()
        administrator = self.settings.administrator
        await self.passwords.set_password(user_id(administrator), password, is_temporary=True)
        shown_password = None if self.settings.password is not None else password
        report(
            FirstLogin(
                page=f"{self.endpoint}{ACCOUNT}",
                administrator=administrator,
                password=shown_password,
                credentials=self.credentials.path,
            )
        )
        await self.store.update_status(replace(record, status=BootstrapStatus(finished=self.clock.now())))

    async def has_lost_credentials(self) -> bool:
        """Return whether `credentials.json` is missing while its account exists: no start writes it again."""
        if await self.run_blocking(self.credentials.read) is not None:
            return False
        record = await find(self.store, Bootstrap, _NAME)
        return record is not None and await exists(self.store, ServiceAccount, record.spec.service_account)

    async def _check_password(self) -> None:
        configured, subject = self.settings.password, self.settings.administrator
        if configured is None:
            return
        names = (self.settings.organization,)
        await self.passwords.check(configured, subject, names, field="identity.bootstrap.password")

    async def _record(self) -> Bootstrap:
        found = await find(self.store, Bootstrap, _NAME)
        if found is not None:
            return found
        ids = {name: random_id(self.randomness) for name in BootstrapSpec.__struct_fields__}
        return await ensure(self.store, Bootstrap(metadata=Metadata(name=_NAME), spec=BootstrapSpec(**ids)))

    async def _create_all(self, ids: BootstrapSpec) -> None:
        """Create members before the groups that name them, and groups before the project that names them."""
        subject, by = self.settings.administrator, _principal(ids.organization)
        organization = await ensure(self.store, new_organization(ids.organization, _organization(self.settings), by))
        await ensure(self.store, rules.new_user(subject, (), by))
        membership = await ensure(self.store, rules.new_membership(organization, subject, "active", by, invited=False))
        await self._create_account(ids, organization)
        users_by_membership = {membership.name: subject}
        await self._create_group(
            ids.administrators, organization, "administrators", "administrator", ids, users_by_membership
        )
        await self._create_group(ids.users, organization, "users", "user", ids, {})
        requested = ProjectWrite(
            metadata=MetadataWrite(name=self.settings.project), spec=ProjectSpecWire(group_ids=(ids.users,))
        )
        await ensure(self.store, new_project(ids.project, organization, requested, by))

    async def _create_group(
        self,
        name: str,
        organization: Organization,
        display_name: str,
        role: str,
        ids: BootstrapSpec,
        users_by_membership: dict[str, str],
    ) -> None:
        spec = GroupSpecWire(role_ids=(role_id(role),), service_account_ids=(ids.service_account,))
        requested = GroupWrite(metadata=MetadataWrite(name=display_name), spec=spec)
        members = group_rules.group_members(requested, users_by_membership, ())
        await ensure(
            self.store, group_rules.new_group(name, organization, requested, members, _principal(organization.name))
        )

    async def _create_account(self, ids: BootstrapSpec, organization: Organization) -> None:
        requested = MetadataWrite(name="scripts", description="For scripts on this machine: see credentials.json.")

        async def store_account(issued: Issued) -> None:
            by = _principal(organization.name)
            new = rules.new_account(ids.service_account, organization, requested, issued, by, lock=None)
            try:
                await self.store.create(new)
            except AlreadyExists:
                await self._rotate(ids.service_account, issued)

        await self._issue(ids, store_account)

    async def _refresh_credentials(self, ids: BootstrapSpec) -> None:
        account = await find(self.store, ServiceAccount, ids.service_account)
        if account is None:
            return
        staged = await self.run_blocking(self.credentials.read_staged)
        if staged is not None and is_hash_of(account.spec.access_token, staged.token.reveal()):
            await self.run_blocking(self.credentials.publish)
        await self.run_blocking(self.credentials.drop_staged)
        current = await self.run_blocking(self.credentials.read)
        if current is None or not is_hash_of(account.spec.access_token, current.token.reveal()):
            return
        if not await self._is_good(current.token):
            await self._issue(ids, lambda issued: self._rotate(account.name, issued))
        elif (now := self._updated(current)) != current:
            await self._write(now)

    async def _is_good(self, token: Secret) -> bool:
        try:
            await self.tokens.verify(token.reveal())
        except Unauthenticated:
            return False
        return True

    async def _issue(self, ids: BootstrapSpec, store_account: Callable[[Issued], Awaitable[None]]) -> None:
        issued = await self.tokens.issue_for_account(ids.service_account, ids.organization)
        new = Credentials(endpoints={}, token=issued.token, organization_id=ids.organization, project_id=ids.project)
        await self.run_blocking(lambda: self.credentials.stage(self._updated(new)))
        await store_account(issued)
        await self.run_blocking(self.credentials.publish)

    async def _write(self, credentials: Credentials) -> None:
        await self.run_blocking(lambda: self.credentials.stage(credentials))
        await self.run_blocking(self.credentials.publish)

    def _updated(self, credentials: Credentials) -> Credentials:
        """Return credentials with the present endpoints and example instance."""
        small = {} if self.example_instance is None else msgspec.structs.asdict(self.example_instance)
        unset = dict.fromkeys(ExampleInstance.__struct_fields__)
        return replace(credentials, endpoints={"identity": self.endpoint, **self.others}, **{**unset, **small})

    async def _rotate(self, name: str, issued: Issued) -> None:
        async def write() -> None:
            account = await self.store.get(ServiceAccount, name)
            await self.store.update(
                rules.rotated(account, issued, _principal(organization_of(account)), self.clock.now())
            )

        await retry_on_conflict(write)

    def _random_password(self) -> Secret:
        letters = [_ALPHABET[self.randomness.randrange(len(_ALPHABET))] for _ in range(_GROUP_COUNT * _GROUP_LENGTH)]
        groups = ["".join(letters[at : at + _GROUP_LENGTH]) for at in range(0, len(letters), _GROUP_LENGTH)]
        return Secret("-".join(groups))


def _principal(organization: str) -> Principal:
    """Return the system principal, with the first organization as the payer."""
    return Principal(subject=_ACTOR, type="system", organization=organization)


def _organization(settings: BootstrapSettings) -> OrganizationWrite:
    return OrganizationWrite(
        metadata=MetadataWrite(name=settings.organization), spec=OrganizationSpecWire(organization_type="adhoc")
    )
