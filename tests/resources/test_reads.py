"""What may not be there, may be about to go, or may be another organization's."""

import pytest

from remuda.identity.kinds import KINDS
from remuda.identity.kinds.users import Group, GroupSpec
from remuda.kernel.errors import NotFound
from remuda.resources.conventions import ORGANIZATION
from remuda.resources.crud import exists, find, find_in, get_in
from remuda.store.kinds import Registry
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated


@options(seeds=1)
async def test_what_is_read_is_there_and_whose_it_should_be(world: World) -> None:
    store = open_simulated(world, Registry(KINDS))
    for name, labels in (("ours", {ORGANIZATION: "here"}), ("theirs", {ORGANIZATION: "there"}), ("nobodys", {})):
        await store.create(Group(metadata=Metadata(name=name, labels=labels), spec=GroupSpec()))
    assert await find(store, Group, "ours") == await get_in(store, Group, "ours", "here")
    assert await find(store, Group, "none") is None
    assert [await exists(store, Group, name) for name in ("theirs", "none")] == [True, False]
    assert await find_in(store, Group, "nobodys", None) is not None
    assert await find_in(store, Group, "ours", None) is None
    for name in ("theirs", "nobodys", "none"):
        assert await find_in(store, Group, name, "here") is None
        with pytest.raises(NotFound, match=name):
            await get_in(store, Group, name, "here")
    await store.close()


@options(seeds=1)
async def test_what_is_about_to_go_is_gone_to_whoever_says_so(world: World) -> None:
    store = open_simulated(world, Registry(KINDS))
    metadata = Metadata(name="leaving", labels={ORGANIZATION: "here"}, finalizers=("example.com/keeps",))
    made = await store.create(Group(metadata=metadata, spec=GroupSpec()))
    await store.delete(Group, made.name, uid=made.uid)
    assert (await get_in(store, Group, "leaving", "here")).is_deleting
    assert await exists(store, Group, "leaving")
    assert not await exists(store, Group, "leaving", include_deleting=False)
    assert await find_in(store, Group, "leaving", "here", include_deleting=False) is None
    with pytest.raises(NotFound):
        await get_in(store, Group, "leaving", "here", include_deleting=False)
    await store.close()
