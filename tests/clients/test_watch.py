"""Following what another service has, in the same process and over a socket: the same is told."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec
import pytest
from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.clients.watch import Changed, Restarted, Synced, WatchMessage
from remuda.http.responses import Collection
from remuda.http.routes import Table
from remuda.identity.kinds.roles import Grant, Role
from remuda.identity.kinds.tenancy import Project
from remuda.identity.rbac.roles import role_id
from remuda.kernel.errors import Forbidden
from remuda.region.kinds.networks import Network
from tests.clients.both_transports import SERVICE, TRANSPORTS, Following, Ground, followed, quota_client_of, remote_of
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.region.environment import NORTH, RegionEnvironment
from tests.kit.sample_api.client import client_of
from tests.kit.sample_api.service import LIST, HorseQuery, HorseRead
from tests.kit.scripted_transport import Scripted, answering

each_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@each_transport
async def test_projects_of_all_organizations_are_listed_and_then_their_changes(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as ground:
        house = ground.house
        other = await house.identity.organization("other")
        abroad = await house.identity.project(other)
        following = ground.follow(ground.identity.watch_all_projects())
        assert {house.project, abroad} <= set(await following.until_synced())
        assert following.known[abroad].metadata.organization_id == other

        new = await house.identity.project(other, name="new")
        assert (await following.until_told("added", new)).metadata.name == "new"
        await _end(house, other, new)
        await following.until_marked(new)
        await following.until_told("deleted", new)
        assert following.restarts == 1


@each_transport
async def test_a_consumer_of_projects_hears_that_one_is_ending(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as ground:
        house, projects = ground.house, quota_client_of(ground, SERVICE).projects()
        first = await anext(projects)
        while first.project.project != house.project:
            first = await anext(projects)
        assert not first.is_deleting
        await house.network()  # keeps the project for a moment
        await _end(house, house.organization, house.project)
        async with asyncio.timeout(20):
            async for seen in projects:
                if seen.is_deleting:
                    assert (seen.project.organization, seen.project.project) == (house.organization, house.project)
                    break
        await projects.aclose()


@each_transport
async def test_servers_and_networks_of_all_tenants_are_told(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as ground:
        house = ground.house
        mine = await house.network()
        servers, networks = ground.follow(ground.region.watch_servers()), ground.follow(ground.region.watch_networks())
        assert set(await networks.until_synced()) == {mine}
        assert await servers.until_synced() == {}

        theirs = await _network_of_others(house)
        seen = (await networks.until_told("added", theirs)).metadata
        assert seen.organization_id != house.organization
        ids = [await house.server(mine), await house.server(theirs)]
        for id_, network in zip(ids, (mine, theirs), strict=True):
            assert (await servers.until_told("added", id_)).status.network_id == network
        for id_ in ids:
            await _until_provisioned(servers, id_)
            read = servers.known[id_]
            assert msgspec.to_builtins(read) == (await house.root.get(f"/api/v2/servers/{id_}")).json

        assert (await house.root.delete(f"/api/v2/servers/{ids[0]}")).status == 202
        await servers.until_marked(ids[0])
        await servers.until_told("deleted", ids[0])
        assert set(servers.known) == {ids[1]}
        assert (await house.root.delete(f"/api/v2/networks/{mine}")).status == 202
        await networks.until_marked(mine)
        await networks.until_told("deleted", mine)
        assert (servers.restarts, networks.restarts) == (1, 1)


@each_transport
async def test_when_rights_change_everything_is_told_anew_as_they_are_now(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport, service="uni-storage") as ground:
        mine = await ground.house.network()
        networks = ground.follow(ground.region.watch_networks())
        assert await networks.until_synced() == {}, "it may not read networks"
        await _grant(ground, "storage-service", Grant(name="region:networks:v2", operations=("read",)))
        await asyncio.sleep(1.1)  # for so long a stream may rely on what it has looked up
        await _touch(ground, mine)
        assert set(await networks.until_synced()) == {mine}
        assert networks.restarts == 2


@each_transport
async def test_who_may_not_read_everywhere_is_refused(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as ground:
        following = ground.follow(ground.identity.watch_all_projects())
        await following.until_synced()
        await _grant(ground, "compute-service", Grant(name="identity:projects", operations=()))
        await asyncio.sleep(1.1)
        await ground.house.identity.project(ground.house.organization, name="more")
        with pytest.raises(Forbidden, match="identity:projects"):
            await following.for_ever()


async def test_a_reader_that_was_away_for_too_long_is_told_anew_what_is_there(tmp_path: Path) -> None:
    async with followed(tmp_path, "local") as ground:
        house = ground.house
        gone = await house.identity.project(house.organization, name="gone")
        following = ground.follow(ground.identity.watch_all_projects())
        assert gone in await following.until_synced()
        await _end(house, house.organization, gone)
        await _until_gone(house, gone)
        _forget_changes(house)
        new = await house.identity.project(house.organization, name="new")
        assert set(await following.until_synced()) == {house.project, new}
        assert following.restarts == 2


async def test_what_happens_while_the_connection_is_broken_is_told_when_it_is_back(tmp_path: Path) -> None:
    async with followed(tmp_path, "remote") as ground:
        house, (identity, _) = ground.house, ground.servers
        gone = await house.identity.project(house.organization, name="gone")
        following = ground.follow(ground.identity.watch_all_projects())
        await following.until_synced()
        await identity.stop()
        await _end(house, house.organization, gone)
        await _until_gone(house, gone)
        new = await house.identity.project(house.organization, name="new")
        hearing = asyncio.create_task(following.until_told("added", new))
        await asyncio.sleep(0.3)
        assert not hearing.done()
        await identity.start()
        await hearing
        assert set(following.known) == {house.project, new}
        assert following.restarts == 1, "it went on where it was"


async def test_a_connection_that_was_broken_for_too_long_is_told_anew_what_is_there(tmp_path: Path) -> None:
    async with followed(tmp_path, "remote") as ground:
        house, (identity, _) = ground.house, ground.servers
        gone = await house.identity.project(house.organization, name="gone")
        following = ground.follow(ground.identity.watch_all_projects())
        await following.until_synced()
        await identity.stop()
        await _end(house, house.organization, gone)
        await _until_gone(house, gone)
        _forget_changes(house)
        await identity.start()
        assert set(await following.until_synced()) == {house.project}
        assert following.restarts == 2


async def _end(house: RegionEnvironment, organization: str, project: str) -> None:
    path = f"{ORGANIZATIONS}/{organization}/projects/{project}"
    expect(await house.identity.client(house.identity.root).delete(path), 202)


async def _until_gone(house: RegionEnvironment, project: str) -> None:
    async def is_gone() -> bool:
        return project not in (await house.store.list_names(Project)).items

    await house.identity.eventually("the project is gone", is_gone)


def _forget_changes(house: RegionEnvironment) -> None:
    feed = house.store._reader.feed(house.store.registry.of(Project))
    feed.lose_history(feed.reached)


async def _network_of_others(house: RegionEnvironment) -> str:
    other = await house.identity.organization("other")
    project = await house.identity.project(other)
    return await house.network("theirs", organizationId=other, projectId=project, regionId=NORTH)


async def _until_provisioned(servers: Following, id_: str) -> None:
    while servers.known[id_].metadata.provisioning_status != "provisioned":
        assert isinstance(await servers.next(), Changed)


async def _grant(ground: Ground, role: str, grant: Grant) -> None:
    """Let a role have these rights to something, and no others to that."""
    found = await ground.house.store.get(Role, role_id(role))
    others = tuple(each for each in found.spec.scopes.everywhere if each.name != grant.name)
    scopes = replace(found.spec.scopes, everywhere=(*others, grant))
    await ground.house.store.update(replace(found, spec=replace(found.spec, scopes=scopes)))


async def _touch(ground: Ground, network: str) -> None:
    found = await ground.house.store.get(Network, network)
    await ground.house.store.update(replace(found, spec=replace(found.spec, dns_nameservers=("192.0.2.53",))))


class Horses:
    async def all(self, context: Context, query: HorseQuery) -> Collection[Any, list[HorseRead]]:
        raise NotImplementedError


class StableApi(Protocol):
    def watch_horses(self) -> AsyncGenerator[WatchMessage[HorseRead]]: ...


async def test_who_is_cut_off_before_everything_was_told_is_told_everything_anew() -> None:
    head = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    one, other = (b'event: added\ndata: {"id":"%b","colour":"bay"}\n\n' % name for name in (b"one", b"other"))
    synced = b'id: 7-0\nevent: bookmark\ndata: {"synced":true}\n\n'
    route: Any = dataclasses.replace(cast("Any", LIST), handler=None, service=Horses, calls=Horses.all)
    stable = Table("stable", title="Stable", description="One list.", routes=[route])
    async with (
        Scripted(answering(b"", head + one, head + one + other + synced)) as url,
        client_of(url) as client,
        aclosing(remote_of(StableApi, stable, client).watch_horses()) as news,
    ):
        heard = [await anext(news) for _ in range(6)]
    ids = [each.item.id if isinstance(each, Changed) else type(each) for each in heard]
    assert ids == [Restarted, "one", Restarted, "one", "other", Synced]
