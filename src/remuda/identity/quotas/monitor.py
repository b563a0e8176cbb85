"""Compares heads with their rows, now and then, and mends a head that is wrong.

While a head stays as it is, what its rows and intents come to cannot change: every change of a row that counts has an
intent in the head. So a head that is read before and after its rows, and is the same, must equal them. One that does
not, twice at the same version, was written by somebody else, or by a defect of ours: it is told in the log and in a
metric, and written anew from the rows.

An organization with very many rows is looked at less often, so that all looks together take next to nothing.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from remuda.identity.kinds.quotas import Allocation, Amounts, Quota, QuotaSpec
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.quota_state import Counted, expected_totals, with_totals
from remuda.identity.quotas.writer import Apply
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.reconcile.leader import Leader
from remuda.reconcile.sources import names
from remuda.resources.crud import find
from remuda.store.contract import Store

_PAGE = 25
_EVERY_S = 300.0
_ROWS_PER_S = 20.0
"""So many rows of an organization are looked at, on the average, if it has very many."""
_EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Drift:
    """What a head says and what it should."""

    version: str
    said: tuple[Amounts, Mapping[str, Amounts]]
    due: tuple[Amounts, Mapping[str, Amounts]]


class Monitor:
    """Looks at all heads, if this process leads."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        *,
        clock: Clock,
        leader: Leader,
        metrics: CollectorRegistry,
        every_s: float = _EVERY_S,
    ) -> None:
        self._store, self._ledger = store, ledger
        self._clock, self._leader, self._every_s = clock, leader, every_s
        self._suspected: dict[str, Drift] = {}
        self._put_off: dict[str, datetime] = {}
        """When an organization with very many rows is due."""
        self._drifting = Gauge(
            "remuda_quota_drift", "Organizations whose head differs from their rows.", registry=metrics
        )
        self._rebuilt = Counter(
            "remuda_quota_rebuilds", "Heads that were written anew from their rows.", registry=metrics
        )

    async def keep(self) -> None:
        """Look for ever: a duty."""
        while True:
            await self._clock.sleep(self._every_s)
            if self._leader.is_leading:
                await self.look()

    async def look(self) -> None:
        """Look once at every head that is due, and mend those that are wrong as they were at the last look."""
        found: dict[str, Drift] = {}
        async for organization in names(self._store, Quota):
            suspected = self._suspected.get(organization)
            is_due = self._put_off.get(organization, _EVER) <= self._clock.now()
            drift = await self._judge(organization, suspected) if is_due else suspected
            if drift is not None:
                found[organization] = drift
        self._suspected = found
        self._drifting.set(len(found))

    async def _judge(self, organization: str, suspected: Drift | None) -> Drift | None:
        """Return how a head differs from its rows, unless it has just been mended."""
        drift, rows = await compared(self._store, organization)
        self._put_off.pop(organization, None)
        if (pause := pause_s(rows, self._every_s)) > self._every_s:
            self._put_off[organization] = self._clock.now() + timedelta(seconds=pause)
        if drift is None:
            return None
        structlog.get_logger().error(
            "quota head differs from its rows", organization=organization, said=drift.said, due=drift.due
        )
        if suspected != drift:
            return drift
        await rebuild(self._store, self._ledger, organization)
        self._rebuilt.inc()
        return None


async def drift_of(store: Store, organization: str) -> Drift | None:
    """Return how a head differs from its rows; None if it does not, or if it moves too fast to tell."""
    return (await compared(store, organization))[0]


async def compared(store: Store, organization: str) -> tuple[Drift | None, int]:
    """Return how a head differs from its rows, and how many rows there are."""
    before, count = await find(store, Quota, organization), 0
    if before is None:
        return None, 0
    counted = Counted(before.spec)
    async for row in _living(store, organization):
        counted.count(row)
        count += 1
    after = await find(store, Quota, organization)
    if after is None or before.version != after.version:
        return None, count
    said, due = _said(before.spec), counted.totals()
    return Drift(before.version, said, due) if said != due else None, count


def pause_s(rows: int, every_s: float = _EVERY_S) -> float:
    """Return how long an organization with so many rows is left alone between two looks."""
    return max(every_s, rows / _ROWS_PER_S)


async def rebuild(store: Store, ledger: Ledger, organization: str) -> Quota:
    """Write the totals of a head anew from its rows and intents."""

    async def judge(_: Quota) -> tuple[Apply, None]:
        rows = [row async for row in _living(store, organization)]
        return lambda spec: with_totals(spec, *expected_totals(spec, rows)), None

    head, _ = await ledger.heads.write(organization, judge, about="totals")
    return head


def _said(spec: QuotaSpec) -> tuple[Amounts, Mapping[str, Amounts]]:
    whole = tuple(sorted(spec.totals, key=lambda amount: amount.kind))
    return whole, {each.project: each.totals for each in spec.projects if each.totals}


async def _living(store: Store, organization: str) -> AsyncGenerator[Allocation]:
    after: str | None = None
    while True:
        page = await store.list(Allocation, index=("living", organization), limit=_PAGE, after=after)
        for row in page.items:
            yield row
        after = page.next
        if after is None:
            return
        await yield_to_loop()
