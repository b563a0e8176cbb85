"""Everything that identity stores, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from remuda.identity.kinds.oauth import AuthorizationCode, BrowserLogin, DeviceGrant, OAuth2Client, OAuth2Provider
from remuda.identity.kinds.quotas import Allocation, Quota, QuotaMetadata
from remuda.identity.kinds.tenancy import Domain, Organization, Project
from remuda.identity.kinds.tokens import Revocation, Session, SigningKey
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount, User
from remuda.operations.kinds import Operation
from remuda.store.contract import Store
from remuda.store.objects import Resource


@dataclass(frozen=True, slots=True)
class IdentitySnapshot:
    """All objects by name. Kinds that customers know are called as the book calls them."""

    organization: Mapping[str, Organization]
    project: Mapping[str, Project]
    group: Mapping[str, Group]
    user: Mapping[str, OrganizationUser]
    account: Mapping[str, ServiceAccount]
    provider: Mapping[str, OAuth2Provider]
    client: Mapping[str, OAuth2Client]
    row: Mapping[str, Allocation]
    users_api: Mapping[str, User]
    heads: Mapping[str, Quota]
    catalogue: Mapping[str, QuotaMetadata]
    domains: Mapping[str, Domain]
    operations: Mapping[str, Operation]
    sessions: Mapping[str, Session]
    logins: Mapping[str, BrowserLogin]
    codes: Mapping[str, AuthorizationCode]
    grants: Mapping[str, DeviceGrant]
    revocations: Mapping[str, Revocation]
    keys: Mapping[str, SigningKey]

    def of(self, kind: str) -> Mapping[str, Any]:
        """Return what the book calls so."""
        found: Mapping[str, Any] = getattr(self, kind)
        return found

    def is_open(self, subject: str) -> bool:
        """Tell whether an operation about this is not closed yet."""
        return any(each.is_open and each.spec.subject == subject for each in self.operations.values())


_TYPES: tuple[type[Resource], ...] = (
    *(Organization, Project, Group, OrganizationUser, ServiceAccount, OAuth2Provider, OAuth2Client, Allocation),
    *(User, Quota, QuotaMetadata, Domain, Operation, Session, BrowserLogin, AuthorizationCode, DeviceGrant),
    *(Revocation, SigningKey),
)
assert len(_TYPES) == len(fields(IdentitySnapshot))


class IdentitySnapshots:
    """Looks at a store, and reads again only what may have changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[type[Resource], tuple[int, Mapping[str, Any]]] = {}

    async def take(self) -> IdentitySnapshot:
        """Return everything."""
        return IdentitySnapshot(*[await self._all(kind) for kind in _TYPES])

    async def _all(self, kind: type[Resource]) -> Mapping[str, Any]:
        change_count, read = self._store.change_counter([kind]), self._read.get(kind)
        if read is not None and read[0] == change_count:
            return read[1]
        found = {each.name: each for each in (await self._store.list(kind)).items}
        self._read[kind] = change_count, found
        return found
