"""Servers as compute follows them: all of them, then that this is all, then what happens."""

import gc
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest

from remuda.access.principal import Principal
from remuda.clients.region import SERVERS, RegionLink
from remuda.clients.watch import Anew, Synced, Told, Watch
from remuda.compute.names import INSTANCE_TAG
from remuda.compute.ports import AllTold
from remuda.kernel.randomness import SystemRandomness
from tests.kit.identity.environment import expect
from tests.kit.region.environment import STANDARD, UBUNTU, RegionEnvironment
from tests.links.ground import SERVICE, WAYS, Ground, followed

OWNER = "f0000000-0000-4000-8000-0000000000aa"


@pytest.mark.parametrize("way", WAYS)
async def test_that_all_servers_of_instances_are_told_is_said(tmp_path: Path, way: str) -> None:
    async with followed(tmp_path, way) as ground:
        network = await ground.house.network()
        await ground.house.server(network, "of-nobody")
        ours = {await _tagged(ground.house, network, name) for name in ("first", "second")}
        *seen, all_told = await _heard(ground.region, 3)
        assert all_told == AllTold(frozenset(ours))
        assert {each.id for each in seen} == ours


async def test_the_garbage_collector_need_not_look_at_the_ids_of_all_that_were_told(tmp_path: Path) -> None:
    async with followed(tmp_path, "here") as ground:
        await _servers(ground)
        *_, all_told = await _heard(ground.region, 3)
        (what_holds_them,) = gc.get_referents(all_told.ids)
        assert not gc.is_tracked(what_holds_them), "100,000 of them would hold the loop"


async def test_whatever_went_before_all_was_told_anew_is_not_among_what_is_there(tmp_path: Path) -> None:
    async with followed(tmp_path, "here") as ground:
        one, other = await _servers(ground)

        async def script(_: Any) -> AsyncGenerator[Any]:
            for each in (
                *(Anew(), Told("added", one), Told("added", other), Told("deleted", other), Synced()),
                *(Told("added", other), Told("modified", one)),
                *(Anew(), Told("added", other)),  # broken off
                *(Anew(), Told("added", one), Synced()),
            ):
                yield each

        heard = [each.ids for each in await _heard(cast("Watch", script), 9) if isinstance(each, AllTold)]
        assert heard == [{one.metadata.id}, {one.metadata.id}]


async def _servers(ground: Ground) -> list[Any]:
    network = await ground.house.network()
    ids = [await _tagged(ground.house, network, name) for name in ("one", "other")]
    known = await ground.follow(SERVERS).until_synced()
    return [known[each] for each in ids]


async def _tagged(house: RegionEnvironment, network: str, name: str) -> str:
    """Make a server that says it belongs to an instance."""
    body = {
        "metadata": {"name": name, "tags": [{"name": INSTANCE_TAG, "value": OWNER}]},
        "spec": {"networkId": network, "flavorId": STANDARD, "imageId": UBUNTU},
    }
    service = house.service(SERVICE, actor="ann@example.com", organization=house.organization, project=house.project)
    return str(expect(await service.post("/api/v2/servers", body), 201)["metadata"]["id"])


async def _heard(watch: Watch, count: int) -> list[Any]:
    """Return the first few things that compute is told of servers."""

    async def service() -> Principal:
        return Principal(subject=SERVICE, type="system")

    unasked = cast("Any", None)
    link = RegionLink(asking=unasked, acting=unasked, service=service, watch=watch, randomness=SystemRandomness())
    servers = cast("AsyncGenerator[Any]", link.servers())
    heard = [await anext(servers) for _ in range(count)]
    await servers.aclose()
    return heard
