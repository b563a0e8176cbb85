"""Stored roles as sets of rights."""

from collections.abc import Iterable
from dataclasses import dataclass

from remuda.access.principal import Permission
from remuda.identity.kinds.roles import Grant, Role, RoleSpec
from remuda.kernel.errors import NotFound
from remuda.store.contract import Store
from remuda.store.derived import Kept

_COMBINATIONS = 1024
_ROLES = (Role,)


@dataclass(frozen=True, slots=True)
class RoleRights:
    """What roles allow together, by where."""

    everywhere: frozenset[Permission] = frozenset()
    organization: frozenset[Permission] = frozenset()
    project: frozenset[Permission] = frozenset()


def rights_of(spec: RoleSpec) -> RoleRights:
    scopes = spec.scopes
    return RoleRights(_permissions(scopes.everywhere), _permissions(scopes.organization), _permissions(scopes.project))


def _permissions(grants: Iterable[Grant]) -> frozenset[Permission]:
    return frozenset(Permission(grant.name, verb) for grant in grants for verb in grant.operations)


class RoleBook:
    """What any combination of roles allows, worked out once for all who have it until some role changes.

    A role that is not there allows nothing: who has others keeps those.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: Kept[frozenset[str], RoleRights] = Kept(store, _COMBINATIONS)

    async def of(self, roles: frozenset[str]) -> RoleRights:
        """Return what these roles, by their ids, allow together."""
        kept = self._kept.find(roles)
        if kept is None:
            stamp = self._store.stamp()
            kept = _together([await self._one(role) for role in roles])
            self._kept.keep(roles, _ROLES, stamp, kept)
        return kept

    async def _one(self, role: str) -> RoleRights:
        try:
            return rights_of((await self._store.get(Role, role)).spec)
        except NotFound:
            return RoleRights()


def _together(several: Iterable[RoleRights]) -> RoleRights:
    whole = RoleRights()
    for each in several:
        whole = RoleRights(
            whole.everywhere | each.everywhere, whole.organization | each.organization, whole.project | each.project
        )
    return whole
