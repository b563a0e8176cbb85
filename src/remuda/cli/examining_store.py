"""What is looked at in a store: whether it is whole, whether the clock fits it, and what waits for an operator."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from remuda.cli.findings import Finding, bad, good, odd
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.operations.kinds import OPEN, OPERATION
from remuda.reconcile.kinds import BREAKER
from remuda.region.kinds.orphans import ORPHAN
from remuda.store.sqlite.backup import Inspection, inspected

_SKEW = timedelta(seconds=5)
_NAMED = 5
_RELEASED_BY = {"orphans": "region", "leftovers": "compute", "strays": "compute"}
"""Which service lets a controller remove things again that had stopped."""

Document = Mapping[str, Any]


def examine_store(path: Path, clock: Clock, *, is_running: bool) -> Iterator[Finding]:
    """Look at a store, whether or not a process has it open."""
    try:
        with inspected(path) as store:
            damage = store.damage()
            if damage:
                remedy = "Keep a copy of the data directory, then restore a backup with remuda restore."
                yield bad("store", f"{path} is damaged: {damage}.", remedy)
                return
            yield good("store", f"{path} is whole.")
            yield _clock(store, clock)
            yield _operations(store, is_running=is_running)
            yield _orphans(store)
            yield _breakers(store)
    except RemudaError as error:
        yield bad("store", error.sentence, "")


def _clock(store: Inspection, clock: Clock) -> Finding:
    now, latest = clock.now(), store.latest()
    if latest is not None and latest > now + _SKEW:
        sentence = f"It is {now:%Y-%m-%d %H:%M:%S} UTC, but the store was written to at {latest:%Y-%m-%d %H:%M:%S}."
        return bad("clock", sentence, "Set the clock: how long tokens and deadlines last hangs on it.")
    return good("clock", f"It is {now:%Y-%m-%d %H:%M:%S} UTC, and the store has seen no later time.")


def _operations(store: Inspection, *, is_running: bool) -> Finding:
    found = list(store.documents(OPERATION, index=OPEN))
    stuck = [each for each in found if _phase(each) == "stuck"]
    if stuck:
        named = _some(f"{each['spec']['saga']} {each['metadata']['name']}" for each in stuck)
        remedy = "Each says in its undoError what keeps it from being undone: mend that, and it goes on by itself."
        return bad("operations", f"{len(stuck)} are stuck: {named}.", remedy)
    if found and not is_running:
        return good("operations", f"{len(found)} were cut off: the next start takes them back.")
    return good("operations", f"{len(found)} are under way, and none is stuck.")


def _phase(operation: Document) -> str:
    status = operation.get("status", {})
    return str(status.get("phase", "running"))


def _orphans(store: Inspection) -> Finding:
    found = list(store.documents(ORPHAN))
    if not found:
        return good("orphans", "The clouds had nothing that is nobody's when they were last looked at.")
    named = _some(f"{each['spec']['subject']} {each['spec']['providerName']}" for each in found)
    remedy = "GET /region/api/v2/recovery/orphans tells of each what it is, and how to adopt or forget it."
    return odd("orphans", f"{len(found)} things in the clouds are nobody's: {named}.", remedy)


def _breakers(store: Inspection) -> Finding:
    found = [each["spec"] for each in store.documents(BREAKER) if each.get("spec", {}).get("tripped")]
    if not found:
        return good("removals", "Nothing that nobody asked to remove was stopped from being removed.")
    named = _some(f"{each.get('controller')} {each.get('group', '')}".strip() for each in found)
    services = sorted({_RELEASED_BY.get(each.get("controller", ""), "region") for each in found})
    release = " and ".join(f"POST /{service}/api/v2/recovery/removals/release" for service in services)
    remedy = f"Find out why so much would go, and if it should, {release}."
    return bad("removals", f"Too much would have gone at once, so nothing more is removed: {named}.", remedy)


def _some(names: Iterable[str]) -> str:
    known = sorted(names)
    return ", ".join(known[:_NAMED]) + (" and more" if len(known) > _NAMED else "")
