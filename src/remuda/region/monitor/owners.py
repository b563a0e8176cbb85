"""Whose something at a provider is: its name tells for which object, and which incarnation of it, it was made.

If that object is not there, our own timeline tells what became of it, as far back as it goes. What it does not know of
is not taken for deleted: the store may be another one, or may have lost something.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from remuda.providers.contract.common import Handle, id_in, uid_in
from remuda.region.kinds.common import ABANDONMENT, is_abandoned
from remuda.region.kinds.orphans import Why
from remuda.region.kinds.servers import Server, cloud_uid_of
from remuda.region.monitor.inventory import Holding
from remuda.region.servers.provider_spec import number_in, numbers_of
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Entry, Log, subject_of
from remuda.store.objects import Resource

_PAGE = 100
_MOST_PAGES = 20
_LET_GO = "LetGo"


class _Said(msgspec.Struct, frozen=True):
    """What of a timeline's entry matters here."""

    event: str = ""
    uid: str = ""


_said = msgspec.json.Decoder(_Said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Knows whose things are."""

    store: Store
    log: Log

    async def why_orphaned(self, holding: Holding, handle: Handle) -> Why | None:
        """Return why something is nobody's, or None if an object stands for it."""
        found = await self.owner_of(holding, handle)
        return None if isinstance(found, Resource) else found

    async def owner_of(self, holding: Holding, handle: Handle) -> Resource | Why:
        """Return the object that something stands for, or why there is none."""
        name, uid = id_in(handle.name), uid_in(handle.name)
        owner = await find(self.store, holding.kind, name) if name else None
        if owner is None or cloud_uid_of(owner) != uid or is_abandoned(owner):
            return await self._history(holding, name, uid)
        if holding.subject == "server" and isinstance(owner, Server):
            return owner if number_in(handle.name) in numbers_of(owner) else "Superseded"
        return owner

    async def _history(self, holding: Holding, name: str, uid: str) -> Why:
        if not uid:
            return "ObjectUnknown"
        subject = subject_of(self.store.registry.of(holding.kind).qualified, name)
        was_let_go, before = False, None
        for _ in range(_MOST_PAGES):
            page = await self.log.read_back("timeline", subject, before=before, limit=_PAGE)
            events = _events_of(page.entries, uid)
            if ABANDONMENT in events:
                return "ObjectAbandoned"
            was_let_go, before = was_let_go or _LET_GO in events, page.next
            if before is None:
                break
        return "ObjectLetGo" if was_let_go else "ObjectUnknown"


def _events_of(entries: Sequence[Entry], uid: str) -> set[str]:
    said = [_said.decode(entry.data) for entry in entries]
    return {each.event for each in said if each.uid == uid}
