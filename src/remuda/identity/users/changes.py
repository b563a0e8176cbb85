"""What is common to changing a user and a service account: who may, in whose turn, and as which operation.

Whoever puts somebody into a group gives them its roles, so they need what the same would take in the group itself: the
right to give each of them. To leave somebody in a group gives nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from remuda.access.principal import Context, Principal
from remuda.identity.kinds.users import OrganizationUser, ServiceAccount
from remuda.identity.users.claims import was_done
from remuda.identity.users.memberships import find_group
from remuda.identity.users.rosters import Member, is_in
from remuda.identity.users.sagas import MemberWork, PeoplePorts
from remuda.operations.saga import Saga
from remuda.operations.service import Operations
from remuda.resources.crud import Turns, each_once, is_there
from remuda.store.contract import Store

WorkT = TypeVar("WorkT", bound=MemberWork)


class Grants(Protocol):
    """Knows who may give which roles: `Rights` does."""

    async def check_grantable(self, principal: Principal, role_ids: Sequence[str], organization: str) -> None:
        """Raise unless this principal may give these roles in this organization."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Runs the operations of users and service accounts."""

    store: Store
    operations: Operations
    grants: Grants
    turns: Turns = field(default_factory=Turns)

    async def run(self, context: Context, plural: str, saga: Saga[PeoplePorts, WorkT], work: WorkT) -> str | None:
        """Carry a request out and return its operation; None if that was done before, and only its answer was lost."""
        member = work.member
        async with self.turns.of(member.value):
            if await was_done(self.store, context.operation):
                return None
            judged = await self._judge(context.principal, member, work.groups)
            done = await self.operations.run(
                saga,
                id=context.operation,
                actor=context.principal.who,
                input=msgspec.structs.replace(work, judged=judged),
                trace_id=context.trace_id,
                log=context.witness(plural, member.id, organization=member.organization),
            )
            return done.name

    async def _judge(self, principal: Principal, member: Member, wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the roles, by group, of those groups that somebody would come into; raise unless they may be given."""
        groups = [await find_group(self.store, member.organization, name) for name in wanted]
        kind = OrganizationUser if member.subject else ServiceAccount
        is_new = not await is_there(self.store, kind, member.id)  # then nothing that has its id already means this one
        entered = {group.name: group.spec.role_ids for group in groups if is_new or not is_in(group, member)}
        if roles := each_once(role for each in entered.values() for role in each):
            await self.grants.check_grantable(principal, roles, member.organization)
        return entered
