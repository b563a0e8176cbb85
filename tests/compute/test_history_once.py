"""Each thing that happens to an instance is told once, whatever becomes of the write that should have told it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.kernel.errors import Conflict, Unavailable
from tests.compute.controlling import (
    SMALL,
    at_cloud,
    change,
    delete_server,
    events,
    made,
    network_of,
    rest,
    tagged_server,
    timeline,
)
from tests.compute.house import JAMMY, ComputeHouse, in_a_compute
from tests.region.house import STANDARD


@contextmanager
def every_other_write_failing(house: ComputeHouse, *, is_made: bool) -> Iterator[list[str]]:
    """Have every other write of an instance's status fail: it is not made, or it is and the answer is lost."""
    store, calls, failed = type(house.app.ports.store), [0], list[str]()
    plain = store.update_status

    async def update_status(self: Any, resource: Any, **more: Any) -> Any:
        if not isinstance(resource, ComputeInstance):
            return await plain(self, resource, **more)
        calls[0] += 1
        if calls[0] % 2 == 0:
            return await plain(self, resource, **more)
        failed.append(resource.name)
        if not is_made:
            raise Conflict("ComputeInstance", resource.name)
        await plain(self, resource, **more)
        raise Unavailable("The answer was lost.")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "update_status", update_status)
        yield failed


@pytest.mark.parametrize("is_made", [False, True])
def test_a_life_is_told_once_though_every_other_write_fails(is_made: bool) -> None:  # noqa: FBT001  a test's
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        with every_other_write_failing(house, is_made=is_made) as failed:
            instance = await made(house, network, flavorId=STANDARD)
            await change(house, instance, flavorId=SMALL)
            await rest(house)
            await change(house, instance, imageId=JAMMY)
            await rest(house)
            await change(house, instance, networking={"publicIP": True})
            await rest(house)
            await delete_server(house, instance)
            await rest(house)
        assert len(failed) > 4
        assert await events(house, instance) == [
            "ServerMade",
            "Replacing",
            "Rebuilt",
            "Rebuilding",
            "Rebuilt",
            "ServerChanged",
            "MadeAgain",
            "AddressesChanged",
        ]
        assert len(at_cloud(house)) == 1

    in_a_compute(scenario)


@pytest.mark.parametrize("is_made", [False, True])
def test_that_it_is_not_clear_which_server_is_its_own_is_told_once(is_made: bool) -> None:  # noqa: FBT001  a test's
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        uid = (await house.store.get(ComputeInstance, instance)).uid
        with every_other_write_failing(house, is_made=is_made) as failed:
            await tagged_server(house, network, "twin", instance=instance, uid=uid)
            await rest(house)
        assert failed
        assert (await events(house, instance)).count("AmbiguousServer") == 1

    in_a_compute(scenario)


def test_what_a_pass_tells_has_the_wish_that_it_worked_on() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD)
        with every_other_write_failing(house, is_made=False):
            await change(house, instance, flavorId=SMALL)
            await rest(house)
        told = {each["event"]: each["generation"] for each in await timeline(house, instance)}
        assert told == {"ServerMade": 1, "Replacing": 2, "Rebuilt": 2}

    in_a_compute(scenario)
