"""Monitor that compares quota records with their allocations, and rebuilds a wrong record.

While a record is unchanged, the sum of its intents and active allocations cannot change, since every change of an
allocation has an intent in the record. So a record that is the same before and after its allocations were read must
equal them. One that differs twice in the same version was written by another program, or by a defect: it is logged,
counted in a metric, and its totals are rebuilt.

An organization with very many allocations is checked less often.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from remuda.identity.kinds.quotas import Allocation, Amounts, Quota, QuotaSpec
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.quota_state import ExpectedTotals, expected_totals, with_totals
from remuda.identity.quotas.writer import Apply
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.reconcile.leader import Leader
from remuda.reconcile.sources import names
from remuda.resources.crud import find
from remuda.store.contract import Store

_PAGE = 25
_INTERVAL_S = 300.0
_ALLOCATIONS_PER_S = 20.0
"""Average number of allocations that are read per second in a large organization."""
_ALWAYS = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Drift:
    """Recorded and expected totals of a quota record."""

    version: str
    recorded: tuple[Amounts, Mapping[str, Amounts]]
    expected: tuple[Amounts, Mapping[str, Amounts]]


class Monitor:
    """Checks all quota records while this process leads."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        *,
        clock: Clock,
        leader: Leader,
        metrics: CollectorRegistry,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        self._store, self._ledger = store, ledger
        self._clock, self._leader, self._every_s = clock, leader, interval_s
        self._suspected: dict[str, Drift] = {}
        self._not_before: dict[str, datetime] = {}
        """Time of the next check of a large organization."""
        self._drifting = Gauge(
            "remuda_quota_drift", "Organizations whose quota record differs from their allocations.", registry=metrics
        )
        self._rebuilt = Counter(
            "remuda_quota_rebuilds", "Quota records whose totals were rebuilt from their allocations.", registry=metrics
        )

    async def run(self) -> None:
        """Check all records at each interval, until the task is cancelled."""
        while True:
            await self._clock.sleep(self._every_s)
            if self._leader.is_leading:
                await self.check_all()

    async def check_all(self) -> None:
        """Check every record that is due, and rebuild those that are as wrong as at the last check."""
        found: dict[str, Drift] = {}
        async for organization in names(self._store, Quota):
            suspected = self._suspected.get(organization)
            is_due = self._not_before.get(organization, _ALWAYS) <= self._clock.now()
            drift = await self._check(organization, suspected) if is_due else suspected
            if drift is not None:
                found[organization] = drift
        self._suspected = found
        self._drifting.set(len(found))

    async def _check(self, organization: str, suspected: Drift | None) -> Drift | None:
        """Return the drift of a record, or None if there is none or the record was rebuilt."""
        drift, allocations = await compare(self._store, organization)
        self._not_before.pop(organization, None)
        if (pause := pause_s(allocations, self._every_s)) > self._every_s:
            self._not_before[organization] = self._clock.now() + timedelta(seconds=pause)
        if drift is None:
            return None
        structlog.get_logger().error(
            "quota record differs from its allocations",
            organization=organization,
            recorded=drift.recorded,
            expected=drift.expected,
        )
        if suspected != drift:
            return drift
        await rebuild(self._store, self._ledger, organization)
        self._rebuilt.inc()
        return None


async def drift_of(store: Store, organization: str) -> Drift | None:
    """Return the drift of a record, or None if there is none or the record changed during the comparison."""
    return (await compare(store, organization))[0]


async def compare(store: Store, organization: str) -> tuple[Drift | None, int]:
    before, count = await find(store, Quota, organization), 0
    if before is None:
        return None, 0
    expected = ExpectedTotals(before.spec)
    async for allocation in _active(store, organization):
        expected.add(allocation)
        count += 1
    after = await find(store, Quota, organization)
    if after is None or before.version != after.version:
        return None, count
    recorded, totals = _recorded_totals(before.spec), expected.totals()
    return Drift(before.version, recorded, totals) if recorded != totals else None, count


def pause_s(allocations: int, interval_s: float = _INTERVAL_S) -> float:
    """Return the time between two checks of an organization with so many allocations."""
    return max(interval_s, allocations / _ALLOCATIONS_PER_S)


async def rebuild(store: Store, ledger: Ledger, organization: str) -> Quota:
    """Rebuild the totals of a record from its intents and allocations."""

    async def validate(_: Quota) -> tuple[Apply, None]:
        allocations = [allocation async for allocation in _active(store, organization)]
        return lambda spec: with_totals(spec, *expected_totals(spec, allocations)), None

    record, _ = await ledger.writer.write(organization, validate, key="totals")
    return record


def _recorded_totals(spec: QuotaSpec) -> tuple[Amounts, Mapping[str, Amounts]]:
    total = tuple(sorted(spec.totals, key=lambda amount: amount.kind))
    return total, {each.project: each.totals for each in spec.projects if each.totals}


async def _active(store: Store, organization: str) -> AsyncGenerator[Allocation]:
    after: str | None = None
    while True:
        page = await store.list(Allocation, index=("active", organization), limit=_PAGE, after=after)
        for allocation in page.items:
            yield allocation
        after = page.next
        if after is None:
            return
        await yield_to_loop()
