"""What the log promises: records come with their write or not at all."""

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, Invalid
from remuda.store.logs import Record
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness
from tests.kit.proofs.store_contract.steps import find, refused, with_spec
from tests.kit.sample_kinds import Horse, HorseStatus, Pasture, horse, pasture

GUARANTEES: list[Guarantee] = []


def record(what: str, *, subject: str = "home", once: bool = False) -> Record:
    return Record(stream="timeline", subject=subject, data=msgspec.Raw(msgspec.json.encode(what)), once=once)


async def logged(harness: Harness, subject: str = "home") -> list[str]:
    entries = (await harness.log.read("timeline", subject)).entries
    return [msgspec.json.decode(entry.data) for entry in entries]


@guarantee(GUARANTEES, "A record is kept with the write it belongs to.")
async def records_come_with_their_write(harness: Harness) -> None:
    created = await harness.store.create(horse("home"), log=[record("created")])
    updated = await harness.store.update(with_spec(created, colour="grey"), log=[record("updated")])
    placed = replace(updated, status=HorseStatus(place="prairie"))
    await harness.store.update_status(placed, log=[record("placed")])
    await harness.store.delete(Horse, "home", uid=created.uid, log=[record("deleted"), record("for good")])
    assert await logged(harness) == ["created", "updated", "placed", "deleted", "for good"]


@guarantee(GUARANTEES, "A record is not kept without the write it belongs to.")
async def records_do_not_come_without_their_write(harness: Harness) -> None:
    stale = await harness.store.create(pasture("home"))
    await harness.store.update(with_spec(stale, acres=1))
    await refused(AlreadyExists, harness.store.create(pasture("home"), log=[record("created")]))
    await refused(Conflict, harness.store.update(with_spec(stale, acres=2), log=[record("updated")]))
    await refused(Conflict, harness.store.delete(Pasture, "home", uid="another", log=[record("deleted")]))
    assert await logged(harness) == []


@guarantee(GUARANTEES, "A record that may be kept once rejects the write that would keep it again.")
async def once_rejects_a_second(harness: Harness) -> None:
    await harness.store.create(pasture("first"), log=[record("created", once=True)])
    await refused(AlreadyExists, harness.store.create(pasture("second"), log=[record("again", once=True)]))
    assert await find(harness, Pasture, "second") is None
    assert await logged(harness) == ["created"]


@guarantee(GUARANTEES, "A record that may be kept once is refused twice in one write, too.")
async def once_rejects_a_second_in_the_same_write(harness: Harness) -> None:
    twice = [record("one", once=True), record("two", once=True)]
    changed = with_spec(await harness.store.create(horse("home")), colour="grey")
    await refused(AlreadyExists, harness.store.update(changed, log=twice))
    assert await logged(harness) == []


@guarantee(GUARANTEES, "Records that belong to no write can be kept too.")
async def records_can_be_appended_alone(harness: Harness) -> None:
    await harness.log.append([record("seen")])
    assert await logged(harness) == ["seen"]


@guarantee(GUARANTEES, "Records are read by subject in pages, in the order they were written.")
async def records_are_read_in_pages(harness: Harness) -> None:
    for number in range(5):
        await harness.log.append([record(str(number)), record("noise", subject="other")])
    first = await harness.log.read("timeline", "home", limit=3)
    assert first.next is not None
    rest = await harness.log.read("timeline", "home", limit=3, after=first.next)
    assert [msgspec.json.decode(entry.data) for entry in (*first.entries, *rest.entries)] == list("01234")
    assert (len(first.entries), rest.next) == (3, None)


@guarantee(GUARANTEES, "Records are read back by subject in pages, the latest first.")
async def records_are_read_back_in_pages(harness: Harness) -> None:
    for number in range(5):
        await harness.log.append([record(str(number)), record("noise", subject="other")])
    first = await harness.log.read_back("timeline", "home", limit=3)
    assert first.next is not None
    await harness.log.append([record("later"), record("noise", subject="other")])
    rest = await harness.log.read_back("timeline", "home", limit=3, before=first.next)
    assert [msgspec.json.decode(entry.data) for entry in (*first.entries, *rest.entries)] == list("43210")
    assert (len(first.entries), rest.next) == (3, None)
    assert (await harness.log.read_back("timeline", "nobody")).entries == []


@guarantee(GUARANTEES, "Reading less than one record is Invalid.")
async def reading_less_than_one_record_is_refused(harness: Harness) -> None:
    await harness.log.append([record("seen")])
    for limit in (0, -1):
        rejection = await refused(Invalid, harness.log.read("timeline", "home", limit=limit))
        assert rejection.field == "limit"
        rejection = await refused(Invalid, harness.log.read_back("timeline", "home", limit=limit))
        assert rejection.field == "limit"
