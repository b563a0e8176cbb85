"""Reading the audit: who did what to which object with which outcome, for whom; the latest first.

An organization's own records are for those who may read the organization itself, which its administrators and auditors
may. They stay readable after it was deleted, for whoever may read every organization, and so are the records of the
system, to which belongs what is nobody's and what strangers tried.

A page looks at ten times its limit of records at most, a hundred at a time so that others get their turn; with filters
it may be short, even empty, and not be the last. `continue` stands for the last record that was looked at, and is
sealed for the caller and the records that it was given for.
"""

from dataclasses import dataclass

from remuda.access.checks import allow_everywhere, allow_in_organization
from remuda.access.principal import Context
from remuda.http.audit import STREAM, subject_of_organization
from remuda.http.pagination import PageTokens
from remuda.identity.auditing.rules import is_too_old, is_wanted, read_entry
from remuda.identity.auditing.wire import AuditQuery, EntryRead, SystemAuditQuery
from remuda.identity.permissions import permission
from remuda.kernel.clock import let_others_run
from remuda.kernel.sealing import Sealer
from remuda.store.logs import Log

READ = permission("organizations", "read")
"""Who may read an organization may read what was done in it."""

_DEFAULT_LIMIT = 100
_LOOKS = 10
_SLICE = 100


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some records, the latest first."""

    entries: list[EntryRead]
    next: str | None
    """Hand this back as `continue`; None if there is no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditing:
    """The records of every component that writes to this log."""

    log: Log
    sealer: Sealer

    async def of_organization(self, context: Context, organization: str, query: AuditQuery) -> AuditPage:
        """Return what was done in an organization."""
        allow_in_organization(context.principal, READ, organization)
        return await self._page(context, subject_of_organization(organization), query)

    async def of_system(self, context: Context, query: SystemAuditQuery) -> AuditPage:
        """Return what belongs to no organization, or to the one that is named."""
        allow_everywhere(context.principal, READ)
        return await self._page(context, subject_of_organization(query.organization), query)

    async def _page(self, context: Context, subject: str, query: AuditQuery) -> AuditPage:
        tokens = PageTokens(self.sealer, path=f"{STREAM}/{subject}", caller=context.principal.caller)
        place = None if query.continue_ is None else tokens.read_position(query.continue_)
        entries, place = await self._look(subject, query, place)
        return AuditPage(entries, None if place is None else tokens.write_position(place))

    async def _look(self, subject: str, query: AuditQuery, place: int | None) -> tuple[list[EntryRead], int | None]:
        """Return what a query means of the records before a place, and where to go on, if there is more."""
        limit = query.limit or _DEFAULT_LIMIT
        found: list[EntryRead] = []
        left = _LOOKS * limit
        at_once = min(limit, _SLICE)
        while True:
            page = await self.log.read_back(STREAM, subject, before=place, limit=min(at_once, left))
            for entry in page.entries:
                if is_too_old(entry, query):
                    return found, None
                read = read_entry(entry)
                if is_wanted(read, query):
                    found.append(read)
                if len(found) == limit:
                    is_last = page.next is None and entry is page.entries[-1]
                    return found, None if is_last else entry.position
            place, left = page.next, left - len(page.entries)
            if place is None or left == 0:
                return found, place
            await let_others_run()
