"""Compares heads with their rows, now and then, and mends a head that is wrong.

While a head stays as it is, what its rows and intents come to cannot change: every change of a row that counts has an
intent in the head. So a head that is read before and after its rows, and is the same, must equal them. One that does
not, twice at the same version, was written by somebody else, or by a defect of ours: it is told in the log and in a
metric, and written anew from the rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from remuda.identity.kinds.quotas import Allocation, Amounts, Quota, QuotaSpec
from remuda.identity.quotas.combining import Apply
from remuda.identity.quotas.heads import expected_totals, with_totals
from remuda.identity.quotas.ledger import Ledger
from remuda.kernel.clock import Clock
from remuda.reconcile.leader import Leader
from remuda.reconcile.sources import names
from remuda.resources.reading import find
from remuda.store.contract import Store

__all__ = ["Drift", "Monitor", "drift_of", "rebuild"]

_PAGE = 200


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
        every_s: float = 300.0,
    ) -> None:
        self._store, self._ledger = store, ledger
        self._clock, self._leader, self._every_s = clock, leader, every_s
        self._suspected: dict[str, Drift] = {}
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
        """Look once at every head, and mend those that are wrong as they were at the last look."""
        found: dict[str, Drift] = {}
        async for organization in names(self._store, Quota):
            drift = await drift_of(self._store, organization)
            if drift is None:
                continue
            structlog.get_logger().error(
                "quota head differs from its rows", organization=organization, said=drift.said, due=drift.due
            )
            if self._suspected.get(organization) == drift:
                await rebuild(self._store, self._ledger, organization)
                self._rebuilt.inc()
            else:
                found[organization] = drift
        self._suspected = found
        self._drifting.set(len(found))


async def drift_of(store: Store, organization: str) -> Drift | None:
    """Return how a head differs from its rows; None if it does not, or if it moves too fast to tell."""
    before = await find(store, Quota, organization)
    rows = await _living(store, organization)
    after = await find(store, Quota, organization)
    if before is None or after is None or before.version != after.version:
        return None
    said, due = _said(before.spec), expected_totals(before.spec, rows)
    return Drift(before.version, said, due) if said != due else None


async def rebuild(store: Store, ledger: Ledger, organization: str) -> Quota:
    """Write the totals of a head anew from its rows and intents."""

    async def judge(_: Quota) -> tuple[Apply, None]:
        rows = await _living(store, organization)
        return lambda spec: with_totals(spec, *expected_totals(spec, rows)), None

    head, _ = await ledger.heads.write(organization, judge, about="totals")
    return head


def _said(spec: QuotaSpec) -> tuple[Amounts, Mapping[str, Amounts]]:
    whole = tuple(sorted(spec.totals, key=lambda amount: amount.kind))
    return whole, {each.project: each.totals for each in spec.projects if each.totals}


async def _living(store: Store, organization: str) -> list[Allocation]:
    rows: list[Allocation] = []
    after: str | None = None
    while True:
        page = await store.list(Allocation, index=("living", organization), limit=_PAGE, after=after)
        rows += page.items
        after = page.next
        if after is None:
            return rows
