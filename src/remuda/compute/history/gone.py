"""Instances that are gone, and whose they were.

The last thing that a controller tells of an instance, in the commit by which it goes, has its labels. As long as
anything of an incarnation is remembered so is this, for it is the youngest: so the past of an instance is judged by the
same scope as the instance was. Its id follows from its network, which never changes its project: what has had one id
has been in one place. It is kept by itself, too (`leaving`), where it is found at once; an earlier release kept it in
the timeline alone.

Who last asked for an instance to be on or off, and why one went, is found in the timeline, from the latest back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec

from remuda.compute.history.noting import PowerAsked
from remuda.compute.instances.leaving import departures_under
from remuda.kernel.clock import let_others_run
from remuda.reconcile.lifecycle import LET_GO
from remuda.resources.conventions import ORGANIZATION, PROJECT, REGION
from remuda.store.logs import Entry, Log

STREAM = "timeline"
"""The log stream of what happened."""

_PAGE = 100
_MOST_PAGES = 20
_MOST_OF_KNOWN = 500
"""Of an instance that is or was there: each create of its name that is refused leaves three entries."""
_POWER = {"Started", "Stopped", "Rebooted", "Replacing", "MadeAgain"}
"""What says whether it is to be on: what people ask for, and another server in its server's place, which runs."""
_ENDS = {"DeletionRequested", "NetworkDeleted", "Undone"}
"""Why an instance goes."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneInstance:
    """An instance that was there."""

    organization: str
    project: str
    region: str
    uid: str
    time: datetime
    """When it went."""


@dataclass(frozen=True, slots=True)
class End:
    """Why an instance went."""

    event: str
    actor: str
    """Who asked for it, if somebody did."""


class _Said(msgspec.Struct, frozen=True):
    event: str = ""
    uid: str = ""
    actor: str = ""
    labels: Mapping[str, str] = {}


_decode = msgspec.json.Decoder(_Said).decode


async def find_gone(log: Log, subject: str) -> GoneInstance | None:
    """Return the last instance of an id that is gone, if one is remembered."""
    kept = await log.read_back(STREAM, departures_under(subject), limit=1)
    return _gone(kept.entries[0]) if kept.entries else await _latest(log, subject, _gone)


async def find_power_asked(log: Log, subject: str, uid: str) -> PowerAsked | None:
    """Return who last asked for this incarnation of an instance to be on or off, if anybody did.

    Who asked for it to be off before it got another server did not ask that of this one.
    """
    return await _latest(log, subject, partial(_power_asked, uid=uid), most_pages=_MOST_OF_KNOWN)


async def find_end(log: Log, subject: str, uid: str) -> End | None:
    """Return why this incarnation of an instance went, if that is remembered."""
    return await _latest(log, subject, partial(_end, uid=uid), most_pages=_MOST_OF_KNOWN)


async def _latest(
    log: Log, subject: str, read: Callable[[Entry], _T | None], *, most_pages: int = _MOST_PAGES
) -> _T | None:
    """Return what is read from the latest entry that has it."""
    before = None
    for _ in range(most_pages):
        page = await log.read_back(STREAM, subject, before=before, limit=_PAGE)
        found = next((each for each in map(read, page.entries) if each is not None), None)
        if found is not None or page.next is None:
            return found
        before = page.next
        await let_others_run()
    return None


def _power_asked(entry: Entry, uid: str) -> PowerAsked | None:
    said = _decode(entry.data)
    if said.event not in _POWER or said.uid != uid:
        return None
    return PowerAsked(stopped=said.event == "Stopped", actor=said.actor or "somebody", time=entry.time)


def _end(entry: Entry, uid: str) -> End | None:
    said = _decode(entry.data)
    return End(said.event, said.actor) if said.event in _ENDS and said.uid == uid else None


def _gone(entry: Entry) -> GoneInstance | None:
    said = _decode(entry.data)
    organization, project = said.labels.get(ORGANIZATION), said.labels.get(PROJECT)
    if said.event != LET_GO or organization is None or project is None:
        return None
    region = said.labels.get(REGION, "")
    return GoneInstance(organization=organization, project=project, region=region, uid=said.uid, time=entry.time)
