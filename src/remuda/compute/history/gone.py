"""Instances that are gone, and whose they were.

The last thing that a controller tells of an instance, in the commit by which it goes, has its labels. As long as
anything of an incarnation is remembered so is this, for it is the youngest: so the past of an instance is judged by the
same scope as the instance was. Its id follows from its network, which never changes its project: what has had one id
has been in one place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from remuda.reconcile.lifecycle import LET_GO
from remuda.resources.labels import ORGANIZATION, PROJECT
from remuda.store.logs import Entry, Log

__all__ = ["STREAM", "GoneInstance", "find_gone"]

STREAM = "timeline"
"""The log stream of what happened."""

_PAGE = 100
_MOST_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneInstance:
    """An instance that was there."""

    organization: str
    project: str
    uid: str
    time: datetime
    """When it went."""


class _Said(msgspec.Struct, frozen=True):
    event: str = ""
    uid: str = ""
    labels: Mapping[str, str] = {}


_decode = msgspec.json.Decoder(_Said).decode


async def find_gone(log: Log, subject: str) -> GoneInstance | None:
    """Return the last instance of an id that is gone, if one is remembered."""
    before = None
    for _ in range(_MOST_PAGES):
        page = await log.read_back(STREAM, subject, before=before, limit=_PAGE)
        found = next(filter(None, map(_gone, page.entries)), None)
        if found is not None or page.next is None:
            return found
        before = page.next
    return None


def _gone(entry: Entry) -> GoneInstance | None:
    said = _decode(entry.data)
    organization, project = said.labels.get(ORGANIZATION), said.labels.get(PROJECT)
    if said.event != LET_GO or organization is None or project is None:
        return None
    return GoneInstance(organization=organization, project=project, uid=said.uid, time=entry.time)
