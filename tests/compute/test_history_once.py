"""Each thing that happens to an instance is told once, whatever becomes of the write that should have told it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.kernel.errors import Conflict, Unavailable
from tests.kit.compute.controllers import (
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
from tests.kit.compute.environment import JAMMY, ComputeEnvironment
from tests.kit.region.environment import STANDARD


@contextmanager
def every_other_write_failing(compute: ComputeEnvironment, *, is_made: bool) -> Iterator[list[str]]:
    """Have every other write of an instance's status fail: it is not made, or it is and the answer is lost."""
    store, calls, failed = type(compute.app.ports.store), [0], list[str]()
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
async def test_a_life_is_told_once_though_every_other_write_fails(
    compute: ComputeEnvironment, *, is_made: bool
) -> None:
    network = await network_of(compute)
    with every_other_write_failing(compute, is_made=is_made) as failed:
        instance = await made(compute, network, flavorId=STANDARD)
        await change(compute, instance, flavorId=SMALL)
        await rest(compute)
        await change(compute, instance, imageId=JAMMY)
        await rest(compute)
        await change(compute, instance, networking={"publicIP": True})
        await rest(compute)
        await delete_server(compute, instance)
        await rest(compute)
    assert len(failed) > 4
    assert await events(compute, instance) == [
        "ServerCreated",
        "Replacing",
        "Replaced",
        "Rebuilding",
        "Rebuilt",
        "ServerChanged",
        "ServerRecreated",
        "AddressesChanged",
    ]
    assert len(at_cloud(compute)) == 1


@pytest.mark.parametrize("is_made", [False, True])
async def test_that_it_is_not_clear_which_server_is_its_own_is_told_once(
    compute: ComputeEnvironment, *, is_made: bool
) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    uid = (await compute.store.get(ComputeInstance, instance)).uid
    with every_other_write_failing(compute, is_made=is_made) as failed:
        await tagged_server(compute, network, "twin", instance=instance, uid=uid)
        await rest(compute)
    assert failed
    assert (await events(compute, instance)).count("AmbiguousServer") == 1


async def test_what_a_pass_tells_has_the_request_that_it_worked_on(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD)
    with every_other_write_failing(compute, is_made=False):
        await change(compute, instance, flavorId=SMALL)
        await rest(compute)
    told = {each["event"]: each["generation"] for each in await timeline(compute, instance)}
    assert told == {"ServerCreated": 1, "Replacing": 2, "Replaced": 2}
