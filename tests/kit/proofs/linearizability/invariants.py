"""What must hold of a ledger: always, and when everything has come to rest."""

from collections.abc import Callable
from datetime import timedelta

from remuda.identity.kinds.quotas import Allocation, Quota
from remuda.identity.quotas.controller import QuotaRecordController
from remuda.identity.quotas.quota_state import expected_totals, used
from remuda.kernel.errors import NotFound, Unavailable, Unusable
from remuda.reconcile.results import ReconcileContext, Requeue
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteStore
from tests.kit.identity.resource_api import ORG
from tests.kit.proofs.linearizability.quota_clients import Quotas
from tests.kit.simulation.checks import at_once
from tests.kit.simulation.runner import World


async def check_invariant(store: Store, organization: str) -> None:
    """A head counts what its intents hold, and its living rows without an intent, for each project as for the whole."""
    try:
        head = await store.get(Quota, organization)
    except NotFound:
        return
    rows = (await store.list(Allocation, index=("active", organization))).items
    whole, projects = expected_totals(head.spec, rows)
    assert tuple(sorted(head.spec.totals, key=lambda each: each.kind)) == whole, (head.spec, rows)
    assert {each.project: each.totals for each in head.spec.projects if each.totals} == projects, (head.spec, rows)
    assert all(amount.committed >= 0 and amount.reserved >= 0 for amount in head.spec.totals), head.spec


def invariant_of(store: SqliteStore, organization: str) -> Callable[[], None]:
    """Return what checks the invariant after every change of a simulated store."""
    checked: list[int] = []

    def check() -> None:
        version = store._writer.version
        if checked != [version]:
            try:
                at_once(check_invariant(store, organization))
            except (Unavailable, Unusable):
                return
            checked[:] = [version]

    return check


async def check_rest(store: Store, organization: str, *, held: dict[str, int], kind: str) -> None:
    """Nothing is under way, and exactly what is held is counted."""
    await check_invariant(store, organization)
    head = await store.get(Quota, organization)
    assert not head.spec.intents, head.spec.intents
    rows = (await store.list(Allocation, index=("active", organization))).items
    found = {row.name: sum(used(amount) for amount in row.spec.allocations if amount.kind == kind) for row in rows}
    assert found == held, (found, held)
    assert all(row.spec.state == "confirmed" for row in rows)


async def settle(world: World, store: Store, quotas: Quotas, life: timedelta, *, organization: str = ORG) -> None:
    """Let the controller do what is due when the time of everything is over."""
    await world.clock.sleep(life.total_seconds() + 1)
    controller = QuotaRecordController(store=store, clock=world.clock, ledger=quotas.ledger)
    for _ in range(100):
        run = ReconcileContext(
            controller="quotas",
            key=organization,
            cause="event",
            registry=store.registry,
            randomness=world.randomness,
        )
        if not isinstance(await controller(organization, run), Requeue):
            return
    raise AssertionError("the controller comes to no end")
