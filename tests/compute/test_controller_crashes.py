"""Compute that ends at any moment: whoever comes after it goes on from there, and nothing is done twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.kernel.errors import AnswerNotKept, Conflict, Unavailable
from remuda.region.kinds.servers import Server
from tests.compute.asking import at, held, is_nothing
from tests.compute.controlling import SMALL, at_cloud, begun_anew, change, events, made, network_of, rest, server_of
from tests.compute.house import ComputeHouse, in_a_compute
from tests.region.house import STANDARD

MOMENTS = [0.0, 0.1, 0.4, 1.0, 2.0, 3.5]


async def _nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize("after_s", MOMENTS)
def test_c11_ended_in_the_middle_of_a_create_it_is_finished_by_the_next(after_s: float) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await house.instance(await network_of(house))
        await house.clock.sleep(after_s)
        async with begun_anew(house, _nothing):
            read = await house.until(instance, "provisioned")
            assert read["status"]["powerState"] == "Running"
            assert len(at_cloud(house)) == 1
            assert await held(house) == [{"servers": 1}]
            assert (await events(house, instance)).count("ServerMade") == 1

    in_a_compute(scenario)


@pytest.mark.parametrize("after_s", MOMENTS)
def test_ended_in_the_middle_of_a_replacement_it_is_finished_once(after_s: float) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD)
        before = await house.read(instance)
        await change(house, instance, flavorId=SMALL)
        await house.clock.sleep(after_s)
        async with begun_anew(house, _nothing):
            read = await house.until(instance, "provisioned")
            assert read["status"] == before["status"]
            assert [each.flavor for each in at_cloud(house)] == [SMALL]
            assert (await house.store.get(Server, instance)).spec.replacement == 1

    in_a_compute(scenario)


@pytest.mark.parametrize("after_s", MOMENTS)
def test_ended_in_the_middle_of_a_delete_it_is_finished_by_the_next(after_s: float) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        assert (await house.root.delete(at(instance))).status == 202
        await house.clock.sleep(after_s)
        async with begun_anew(house, _nothing):
            await rest(house)
            await is_nothing(house)
            assert not at_cloud(house)

    in_a_compute(scenario)


@pytest.mark.parametrize("trouble", [Unavailable("not now"), Conflict("ComputeInstance", "x")])
def test_c03_a_replacement_that_nobody_came_to_write_down_is_shown_and_not_asked_for_again(trouble: Exception) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD)
        store, failures = type(house.app.ports.store), [trouble]
        plain = store.update_status

        async def failing(self: Any, resource: Any, **more: Any) -> Any:
            server = await server_of(house, instance)
            if isinstance(resource, ComputeInstance) and failures and server is not None and server.spec.replacement:
                raise failures.pop()
            return await plain(self, resource, **more)

        seen: set[str] = set()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(store, "update_status", failing)
            await change(house, instance, flavorId=SMALL)
            for _ in range(300):
                seen.add((await house.read(instance))["status"]["powerState"])
                await house.clock.sleep(0.1)
        assert not failures
        assert "Rebuilding" in seen
        assert (await events(house, instance))[1:] == ["Replacing", "Rebuilt"]
        assert (await house.store.get(Server, instance)).spec.replacement == 1
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"

    in_a_compute(scenario)


@contextmanager
def _a_lost_answer(house: ComputeHouse, *, is_done: bool) -> Iterator[None]:
    """Have the answer to the next create of a server lost, whether it is made or not."""
    link: Any = type(house.app.ports.region)
    plain, left = link.create_server, [Unavailable("The answer was lost.")]

    async def create_server(self: Any, *args: Any) -> Any:
        if not left or is_done:
            made = await plain(self, *args)
        if left:
            raise left.pop()
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(link, "create_server", create_server)
        yield
    assert not left, "a server was asked for"


@pytest.mark.parametrize("is_done", [True, False])
def test_c11_a_create_without_an_answer_makes_no_second_server(is_done: bool) -> None:  # noqa: FBT001  a test's
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        with _a_lost_answer(house, is_done=is_done):
            instance = await house.instance(network)
            await house.until(instance, "provisioned")
        assert len(at_cloud(house)) == 1
        assert len((await house.store.list(Server)).items) == 1
        assert await held(house) == [{"servers": 1}]

    in_a_compute(scenario)


@pytest.mark.parametrize("is_done", [True, False])
def test_deleted_while_the_answer_to_its_create_is_missing_nothing_is_left(is_done: bool) -> None:  # noqa: FBT001  so
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        with _a_lost_answer(house, is_done=is_done):
            instance = await house.instance(network)
            await house.clock.sleep(0.3)
            assert (await house.root.delete(at(instance))).status == 202
            await house.until_gone(instance)
        await rest(house)
        await is_nothing(house)
        assert not at_cloud(house)

    in_a_compute(scenario)


@pytest.mark.parametrize("trouble", [AnswerNotKept(), Unavailable("The answer was lost.")])
def test_a_replacement_whose_answer_is_lost_is_done_once(trouble: Exception) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD)
        link: Any = type(house.app.ports.region)
        plain, left = link.replace_server, [trouble]

        async def replace_server(self: Any, wanted: Any) -> Any:
            replaced = await plain(self, wanted)
            if left:
                raise left.pop()
            return replaced

        seen: set[str] = set()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(link, "replace_server", replace_server)
            await change(house, instance, flavorId=SMALL)
            for _ in range(200):
                seen.add((await house.read(instance))["metadata"]["provisioningStatus"])
                await house.clock.sleep(0.1)
        assert not left
        assert seen == {"provisioning", "provisioned"}
        assert (await house.store.get(Server, instance)).spec.replacement == 1
        assert [each.flavor for each in at_cloud(house)] == [SMALL]

    in_a_compute(scenario)
