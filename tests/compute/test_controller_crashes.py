"""Compute that ends at any moment: whoever comes after it goes on from there, and nothing is done twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.kernel.errors import Conflict, ResponseNotStored, Unavailable
from remuda.region.kinds.servers import Server
from tests.kit.compute.controllers import SMALL, at_cloud, change, events, made, network_of, rest, restarted, server_of
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import at, held, is_nothing
from tests.kit.region.environment import STANDARD

MOMENTS = [0.0, 0.1, 0.4, 1.0, 2.0, 3.5]


async def _nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize("after_s", MOMENTS)
async def test_c11_ended_in_the_middle_of_a_create_it_is_finished_by_the_next(
    compute: ComputeEnvironment, after_s: float
) -> None:
    instance = await compute.instance(await network_of(compute))
    await compute.clock.sleep(after_s)
    async with restarted(compute, _nothing):
        read = await compute.until(instance, "provisioned")
        assert read["status"]["powerState"] == "Running"
        assert len(at_cloud(compute)) == 1
        assert await held(compute) == [{"servers": 1}]
        assert (await events(compute, instance)).count("ServerCreated") == 1


@pytest.mark.parametrize("after_s", MOMENTS)
async def test_ended_in_the_middle_of_a_replacement_it_is_finished_once(
    compute: ComputeEnvironment, after_s: float
) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD)
    before = await compute.read(instance)
    await change(compute, instance, flavorId=SMALL)
    await compute.clock.sleep(after_s)
    async with restarted(compute, _nothing):
        read = await compute.until(instance, "provisioned")
        assert read["status"] == before["status"]
        assert [each.flavor for each in at_cloud(compute)] == [SMALL]
        assert (await compute.store.get(Server, instance)).spec.replacement == 1


@pytest.mark.parametrize("after_s", MOMENTS)
async def test_ended_in_the_middle_of_a_delete_it_is_finished_by_the_next(
    compute: ComputeEnvironment, after_s: float
) -> None:
    instance = await made(compute, await network_of(compute))
    assert (await compute.root.delete(at(instance))).status == 202
    await compute.clock.sleep(after_s)
    async with restarted(compute, _nothing):
        await rest(compute)
        await is_nothing(compute)
        assert not at_cloud(compute)


@pytest.mark.parametrize("trouble", [Unavailable("not now"), Conflict("ComputeInstance", "x")])
async def test_c03_a_replacement_that_nobody_came_to_write_down_is_shown_and_not_asked_for_again(
    compute: ComputeEnvironment, trouble: Exception
) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD)
    store, failures = type(compute.app.ports.store), [trouble]
    plain = store.update_status

    async def failing(self: Any, resource: Any, **more: Any) -> Any:
        server = await server_of(compute, instance)
        if isinstance(resource, ComputeInstance) and failures and server is not None and server.spec.replacement:
            raise failures.pop()
        return await plain(self, resource, **more)

    seen: set[str] = set()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "update_status", failing)
        await change(compute, instance, flavorId=SMALL)
        for _ in range(300):
            seen.add((await compute.read(instance))["status"]["powerState"])
            await compute.clock.sleep(0.1)
    assert not failures
    assert "Rebuilding" in seen
    assert (await events(compute, instance))[1:] == ["Replacing", "Replaced"]
    assert (await compute.store.get(Server, instance)).spec.replacement == 1
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"


@contextmanager
def _a_lost_answer(compute: ComputeEnvironment, *, is_done: bool) -> Iterator[None]:
    """Have the answer to the next create of a server lost, whether it is made or not."""
    link: Any = compute.app.ports.region.api
    plain, left = link.create_server, [Unavailable("The answer was lost.")]

    async def create_server(*args: Any) -> Any:
        if not left or is_done:
            made = await plain(*args)
        if left:
            raise left.pop()
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(link, "create_server", create_server)
        yield
    assert not left, "a server was asked for"


@pytest.mark.parametrize("is_done", [True, False])
async def test_c11_a_create_without_an_answer_makes_no_second_server(
    compute: ComputeEnvironment, *, is_done: bool
) -> None:
    network = await network_of(compute)
    with _a_lost_answer(compute, is_done=is_done):
        instance = await compute.instance(network)
        await compute.until(instance, "provisioned")
    assert len(at_cloud(compute)) == 1
    assert len((await compute.store.list(Server)).items) == 1
    assert await held(compute) == [{"servers": 1}]


@pytest.mark.parametrize("is_done", [True, False])
async def test_deleted_while_the_answer_to_its_create_is_missing_nothing_is_left(
    compute: ComputeEnvironment, *, is_done: bool
) -> None:
    network = await network_of(compute)
    with _a_lost_answer(compute, is_done=is_done):
        instance = await compute.instance(network)
        await compute.clock.sleep(0.3)
        assert (await compute.root.delete(at(instance))).status == 202
        await compute.until_gone(instance)
    await rest(compute)
    await is_nothing(compute)
    assert not at_cloud(compute)


@pytest.mark.parametrize("trouble", [ResponseNotStored(), Unavailable("The answer was lost.")])
async def test_a_replacement_whose_answer_is_lost_is_done_once(compute: ComputeEnvironment, trouble: Exception) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD)
    link: Any = compute.app.ports.region.api
    plain, left = link.replace_server, [trouble]

    async def replace_server(*args: Any, **options: Any) -> Any:
        replaced = await plain(*args, **options)
        if left:
            raise left.pop()
        return replaced

    seen: set[str] = set()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(link, "replace_server", replace_server)
        await change(compute, instance, flavorId=SMALL)
        for _ in range(200):
            seen.add((await compute.read(instance))["metadata"]["provisioningStatus"])
            await compute.clock.sleep(0.1)
    assert not left
    assert seen == {"provisioning", "provisioned"}
    assert (await compute.store.get(Server, instance)).spec.replacement == 1
    assert [each.flavor for each in at_cloud(compute)] == [SMALL]
