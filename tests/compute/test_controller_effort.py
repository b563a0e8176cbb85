"""The effort of a new instance: no reconcile that has nothing to do, and no search for a server that cannot exist."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from remuda.compute.app import TABLE
from remuda.reconcile.reporter import ReconcileResult, Reporter
from remuda.reconcile.results import ReconcileContext
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.compute.controllers import made, network_of, rest, restarted
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.region_api import with_methods


class Outcomes(Reporter):
    """Records the outcomes of reconciles of instances."""

    def __init__(self) -> None:
        self.of: dict[str, list[ReconcileResult]] = {}

    def finished(self, run: ReconcileContext, outcome: ReconcileResult, seconds: float) -> None:  # noqa: ARG002  as told
        if run.controller == "instances":
            self.of.setdefault(run.key, []).append(outcome)


async def _nothing() -> None:
    return


async def test_an_instance_is_not_reconciled_while_its_create_operation_runs(compute: ComputeEnvironment) -> None:
    network, outcomes = await network_of(compute), Outcomes()
    async with restarted(compute, _nothing, reporter=outcomes) as app:
        compute.asgi = Validated(app.api, response_contract(TABLE))
        instance = await made(compute, network)
        await rest(compute, 1)
    assert outcomes.of[instance][0] == "requeue", "the first reconcile requests the server"
    assert "blocked" not in outcomes.of[instance]


async def test_the_server_of_a_new_instance_is_created_before_one_is_looked_for(compute: ComputeEnvironment) -> None:
    network, called = await network_of(compute), Counter[str]()
    region = compute.app.ports.region

    def list_servers(*arguments: Any) -> AsyncIterator[Any]:
        called["list_servers before create_server"] += not called["create_server"]
        return region.api.list_servers(*arguments)

    async def create_server(*arguments: Any) -> Any:
        called["create_server"] += 1
        return await region.api.create_server(*arguments)

    client = with_methods(region, list_servers=list_servers, create_server=create_server)
    async with restarted(compute, _nothing, region=client) as app:
        compute.asgi = Validated(app.api, response_contract(TABLE))
        await made(compute, network)
    assert called == {"create_server": 1, "list_servers before create_server": 0}
