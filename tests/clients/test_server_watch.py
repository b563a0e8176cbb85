"""Servers as compute follows them: all of them, then that this is all, then what happens."""

import gc
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from remuda.clients.watch import Changed, Restarted, Synced
from remuda.compute.instances.server_watch import AllServers, watch_servers
from remuda.compute.names import INSTANCE_TAG
from remuda.region.api import RegionApi
from tests.kit.both_transports import SERVICE, TRANSPORTS, FollowedServices, followed
from tests.kit.identity.environment import expect
from tests.kit.region.environment import STANDARD, UBUNTU, RegionEnvironment

OWNER = "f0000000-0000-4000-8000-0000000000aa"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_that_all_servers_of_instances_are_told_is_said(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as environment:
        network = await environment.system.network()
        await environment.system.server(network, "of-nobody")
        ours = {await _tagged(environment.system, network, name) for name in ("first", "second")}
        *seen, all_told = await _heard(environment.region, 3)
        assert all_told == AllServers(frozenset(ours), all_told.cursor)
        assert all_told.cursor
        assert {each.item.metadata.id for each in seen} == ours


async def test_the_garbage_collector_need_not_look_at_the_ids_of_all_that_were_told(tmp_path: Path) -> None:
    async with followed(tmp_path, "local") as environment:
        await _servers(environment)
        *_, all_told = await _heard(environment.region, 3)
        (what_holds_them,) = gc.get_referents(all_told.ids)
        assert not gc.is_tracked(what_holds_them), "100,000 of them would hold the loop"


async def test_whatever_went_before_all_was_told_again_is_not_among_what_is_there(tmp_path: Path) -> None:
    async with followed(tmp_path, "local") as environment:
        one, other = await _servers(environment)

        async def script(_since: str) -> AsyncGenerator[Any]:
            for each in (
                *(Restarted(), Changed("added", one), Changed("added", other), Changed("deleted", other), Synced()),
                *(Changed("added", other), Changed("modified", one)),
                *(Restarted(), Changed("added", other)),  # broken off
                *(Restarted(), Changed("added", one), Synced()),
            ):
                yield each

        heard = [
            each.ids
            for each in await _heard(cast("RegionApi", SimpleNamespace(watch_servers=script)), 9)
            if isinstance(each, AllServers)
        ]
        assert heard == [{one.metadata.id}, {one.metadata.id}]


async def _servers(environment: FollowedServices) -> list[Any]:
    network = await environment.system.network()
    ids = [await _tagged(environment.system, network, name) for name in ("one", "other")]
    known = await environment.follow(environment.region.watch_servers()).until_synced()
    return [known[each] for each in ids]


async def _tagged(system: RegionEnvironment, network: str, name: str) -> str:
    """Make a server that says it belongs to an instance."""
    body = {
        "metadata": {"name": name, "tags": [{"name": INSTANCE_TAG, "value": OWNER}]},
        "spec": {"networkId": network, "flavorId": STANDARD, "imageId": UBUNTU},
    }
    service = system.service(SERVICE, actor="ann@example.com", organization=system.organization, project=system.project)
    return str(expect(await service.post("/api/v2/servers", body), 201)["metadata"]["id"])


async def _heard(region: RegionApi, count: int) -> list[Any]:
    """Return the first messages of the watch of servers."""
    servers = watch_servers(region)
    heard = [await anext(servers) for _ in range(count)]
    await servers.aclose()
    return heard
