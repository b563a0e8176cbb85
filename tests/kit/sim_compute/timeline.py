"""What timelines tell of instances: nothing happens there that nothing has caused before."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from remuda.compute.kinds import INSTANCE
from remuda.store.logs import Log, subject_of
from tests.kit.sim_compute.history import ComputeHistory

ENDS = {"DeletionRequested", "NetworkDeleted", "CreateRolledBack"}
"""Why an instance goes."""
RECREATED = {"Rebuilding", "Replacing"}
"""What happens to a server that somebody wants otherwise."""
CHANGES = {"ChangeRequested", "OperationStarted", "OperationUndoing", "OperationUndone"}
"""How somebody comes to want that; what an operation has changed and then rolled back counts as well."""

Entry = Mapping[str, Any]


async def check_timelines(log: Log, history: ComputeHistory) -> int:
    """Compare the timelines of all instances that customers know with the invariants; return their number."""
    count = 0
    for id_ in history.known["instance"]:
        entries = await _entries(log, id_)
        count += len(entries)
        for uid in {entry["uid"] for entry in entries if "uid" in entry}:
            _check_life([entry for entry in entries if entry.get("uid", uid) == uid], id_, history)
    return count


async def _entries(log: Log, id_: str) -> list[Entry]:
    found: list[Entry] = []
    after: int | None = 0
    while after is not None:
        page = await log.read("timeline", subject_of(INSTANCE.qualified, id_), after=after)
        found += [msgspec.json.decode(entry.data) for entry in page.entries]
        after = page.next
    return found


def _check_life(entries: Iterable[Entry], id_: str, history: ComputeHistory) -> None:
    """Every effect has a cause before it. Operations do not know the uid, and so are in every life of a name.

    An effect may be told twice: whoever cannot write what it made of it tells of it all the same, and comes again. Or
    it is told late, after the next request: there have to be as many requests before it as there are effects, and the
    operation that made the instance is none of them.
    """
    seen: list[str] = []
    again: list[Entry] = []
    for entry in entries:
        event, told = entry["event"], f"the instance {id_}: {entry} comes after {seen}"
        if event == "FinalizerRemoved":
            assert ENDS & set(seen), told
        elif event in RECREATED and not any(_is_same(entry, other) for other in again):
            again.append(entry)
            assert len(again) < sum(each in CHANGES for each in seen), told
        elif event == "ServerCreated":
            assert "OperationDone" in seen, told
        elif event == "ServerRecreated":
            assert "ServerCreated" in seen, told
            is_disturbed = any(server.startswith(f"server-{id_}.") for server in history.disturbed)
            assert id_ in history.undercut or is_disturbed, told
        seen.append(event)


def _is_same(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are about the same server that is recreated."""
    return all(one[fact] == other[fact] for fact in ("event", "generation", "was", "flavor", "image"))
