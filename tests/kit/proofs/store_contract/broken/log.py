"""Stores that break what the log promises."""

from collections.abc import Sequence
from typing import Any

import msgspec

from remuda.kernel.errors import Conflict
from remuda.store.logs import LogPage, Record
from remuda.store.objects import ResourceT
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import log as guarantees

FLAWS: list[Flaw] = []


@breaks(FLAWS, guarantees.records_come_with_their_write)
class LogsNoStatus(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        del options
        return await self.sound.update_status(resource)


@breaks(FLAWS, guarantees.records_do_not_come_without_their_write)
class LogsRefusedUpdates(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.update(resource, **options)
        except Conflict:
            await self.sound.append(options.get("log", ()))
            raise


@breaks(FLAWS, guarantees.once_rejects_a_second)
class LogsOnceAndAgain(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        records = [msgspec.structs.replace(record, once=False) for record in options.get("log", ())]
        return await self.sound.create(resource, log=records)


@breaks(FLAWS, guarantees.once_rejects_a_second_in_the_same_write)
class CountsOnceByWrite(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        records = options.get("log", ())
        first = {(record.stream, record.subject): record for record in reversed(records)}
        return await self.sound.update(resource, log=list(first.values()) if len(first) < len(records) else records)


@breaks(FLAWS, guarantees.records_can_be_appended_alone)
class LosesSingleRecords(Flawed):
    async def append(self, records: Sequence[Record]) -> None:
        if len(records) > 1:
            await self.sound.append(records)


@breaks(FLAWS, guarantees.records_are_read_in_pages)
class RepeatsTheLastRecord(Flawed):
    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self.sound.read(stream, subject, after=max(after - 1, 0), limit=limit)


@breaks(FLAWS, guarantees.records_are_read_back_in_pages)
class ReadsForwardsWhenAskedBack(Flawed):
    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        return await self.sound.read(stream, subject, after=before or 0, limit=limit)


@breaks(FLAWS, guarantees.records_are_read_back_in_pages)
class RepeatsTheFirstRecord(Flawed):
    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        again = None if before is None else before + 1
        return await self.sound.read_back(stream, subject, before=again, limit=limit)


@breaks(FLAWS, guarantees.reading_less_than_one_record_is_refused)
class ReadsNothingOfNothing(Flawed):
    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self.sound.read(stream, subject, after=after, limit=limit) if limit > 0 else LogPage([], None)
