"""What must hold in the livery: always, and when everything has come to rest."""

from collections.abc import Mapping
from dataclasses import dataclass

from remuda.kernel.conditions import find_condition
from remuda.operations.kinds import Operation
from remuda.store.contract import Store
from tests.example.book import Book
from tests.example.kinds import Ledger, Mount, Stall, Yard
from tests.example.looking import pasture_name
from tests.example.pasture import SimPasture


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is stored at one moment."""

    yards: Mapping[str, Yard]
    mounts: Mapping[str, Mount]
    ledgers: Mapping[str, Ledger]
    rows: Mapping[str, Stall]
    operations: Mapping[str, Operation]

    @property
    def grazing(self) -> Mapping[str, Mount]:
        """The mounts by the name that the pasture has them under."""
        return {pasture_name(mount): mount for mount in self.mounts.values()}


async def snapshot(store: Store) -> Snapshot:
    """Read everything."""
    kinds = (Yard, Mount, Ledger, Stall, Operation)
    found = [{each.name: each for each in (await store.list(kind)).items} for kind in kinds]
    return Snapshot(*found)  # type: ignore[arg-type]  # in the order of the fields


def check_always(seen: Snapshot, book: Book, pasture: SimPasture) -> None:
    """No law is broken, whatever is going on."""
    for head in seen.ledgers.values():
        check_ledger(seen, head)
    watched: tuple[Yard | Mount, ...] = (*seen.yards.values(), *seen.mounts.values())
    for each in watched:
        assert each.status.observed_generation <= each.metadata.generation, f"{each.name} is ahead of itself"
    for operation, (mount, _) in book.mounts.items():
        found = seen.mounts.get(mount)
        assert found is not None, f"the mount {mount} was promised and is not there"
        assert found.spec.operation == operation, f"the mount {mount} is another than the one promised"
        assert not found.is_deleting, f"the mount {mount} goes and nobody asked for it"
    for yard in book.yards:
        assert yard in seen.yards, f"the yard {yard} was promised and is not there"
    check_pasture(seen, pasture)


def check_ledger(seen: Snapshot, head: Ledger) -> None:
    """A head counts its living rows, and the intents that have none, and never more than its limit."""
    spec = head.spec
    living = {row.name for row in seen.rows.values() if row.spec.yard == head.name and row.spec.life != "released"}
    counted = living | {intent.operation for intent in spec.intents}
    assert spec.used == len(counted), f"the ledger {head.name} says {spec.used} and there are {sorted(counted)}"
    assert 0 <= spec.used <= spec.limit, f"{spec.used} of {spec.limit} stalls are used"


def check_pasture(seen: Snapshot, pasture: SimPasture) -> None:
    """Nothing grazes before its operation is done, or without a stall.

    Except what goes: a call that was on its way for long may bring it back for a moment, until it is found astray.
    """
    grazing = seen.grazing
    for name in pasture.mounts:
        mount = grazing.get(name)
        if mount is None or mount.is_deleting:
            continue
        operation, row = seen.operations.get(mount.spec.operation), seen.rows.get(mount.spec.operation)
        assert operation is not None, f"{name} grazes, and no operation made it"
        assert operation.phase == "done", f"{name} grazes, and its operation is {operation.phase}"
        assert row is not None, f"{name} grazes without a stall"
        assert row.spec.life == "confirmed", f"{name} grazes, and its stall is {row.spec.life}"


def check_removal(seen: Snapshot, name: str) -> None:
    """A mount is brought in only when its object is marked or gone."""
    mount = seen.grazing.get(name)
    assert mount is None or mount.is_deleting, f"{name} was brought in and nobody asked for it"


def unrest(seen: Snapshot, book: Book, pasture: SimPasture) -> list[str]:
    """Return what keeps the livery from being at rest."""
    wanted = seen.grazing
    found = [f"the operation {each.name} is {each.phase}" for each in seen.operations.values() if each.is_open]
    kept = (*seen.yards.values(), *seen.mounts.values(), *seen.ledgers.values())
    found += [f"{type(each).__name__} {each.name} is still going" for each in kept if each.is_deleting]
    for yard in seen.yards.values():
        head = seen.ledgers.get(yard.name)
        # A mount may take a stall between the judgement of a smaller yard and its becoming true: then it has to say so.
        is_too_full = head is not None and head.spec.used > yard.spec.stalls
        found += _not_saying(yard, "TooFull") if is_too_full else _not_available(yard)
    for mount in seen.mounts.values():
        found += _not_available(mount)
        grazing = pasture.mounts.get(pasture_name(mount))
        if grazing is None or grazing.paddock != mount.spec.paddock or grazing.id != mount.status.pasture_id:
            found.append(f"the mount {mount.name} is not as it should be in the pasture: {grazing}")
    found += [f"{name} grazes and nobody owns it" for name in pasture.mounts if name not in wanted]
    for head in seen.ledgers.values():
        standing = sum(mount.spec.yard == head.name for mount in seen.mounts.values())
        if head.spec.intents or head.spec.used != standing:
            found.append(f"the ledger {head.name} has {head.spec.used} for {standing} mounts, and {head.spec.intents}")
    there = {mount.spec.operation for mount in seen.mounts.values()} | seen.yards.keys()
    found += [f"{each} was promised to go" for each in sorted(book.must_go & there)]
    return found


def _not_available(each: Yard | Mount) -> list[str]:
    return _not_saying(each, "Provisioned")


def _not_saying(each: Yard | Mount, reason: str) -> list[str]:
    available = find_condition(each.status.conditions, "Available")
    is_current = available is not None and available.observed_generation == each.metadata.generation
    if available is None or not is_current or available.reason != reason:
        said = "nothing" if available is None else f"{available.reason}: {available.message}"
        return [f"the {type(each).__name__} {each.name} does not say {reason} but {said}"]
    return []
