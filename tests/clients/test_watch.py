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
from remuda.identity.kinds.tenancy import Project
from remuda.identity.kinds.users import Grant, Role
from remuda.identity.rbac.roles import role_id
from remuda.kernel.errors import Forbidden
from remuda.region.kinds.networks import Network
from tests.kit.both_transports import (
    SERVICE,
    TRANSPORTS,
    FollowedServices,
    Following,
    followed,
    quota_client_of,
    remote_of,
)
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.region.environment import NORTH, RegionEnvironment
from tests.kit.sample_api.client import client_of
from tests.kit.sample_api.service import LIST, HorseQuery, HorseRead
from tests.kit.scripted_transport import Scripted, answering

each_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@each_transport
async def test_projects_of_all_organizations_are_listed_and_then_their_changes(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as environment:
        system = environment.system
        other = await system.identity.organization("other")
        abroad = await system.identity.project(other)
        following = environment.follow(environment.identity.watch_all_projects())
        assert {system.project, abroad} <= set(await following.until_synced())
        assert following.known[abroad].metadata.organization_id == other

        new = await system.identity.project(other, name="new")
        assert (await following.until_told("added", new)).metadata.name == "new"
        await _end(system, other, new)
        await following.until_marked(new)
        await following.until_told("deleted", new)
        assert following.restarts == 1


@each_transport
async def test_a_consumer_of_projects_hears_that_one_is_ending(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as environment:
        system, projects = environment.system, quota_client_of(environment, SERVICE).projects()
        first = await anext(projects)
        while first.project.project != system.project:
            first = await anext(projects)
        assert not first.is_deleting
        await system.network()  # keeps the project for a moment
        await _end(system, system.organization, system.project)
        async with asyncio.timeout(120):
            async for seen in projects:
                if seen.is_deleting:
                    assert (seen.project.organization, seen.project.project) == (system.organization, system.project)
                    break
        await projects.aclose()


@each_transport
async def test_servers_and_networks_of_all_tenants_are_told(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as environment:
        system = environment.system
        mine = await system.network()
        servers, networks = (
            environment.follow(environment.region.watch_servers()),
            environment.follow(environment.region.watch_networks()),
        )
        assert set(await networks.until_synced()) == {mine}
        assert await servers.until_synced() == {}

        theirs = await _network_of_others(system)
        seen = (await networks.until_told("added", theirs)).metadata
        assert seen.organization_id != system.organization
        ids = [await system.server(mine), await system.server(theirs)]
        for id_, network in zip(ids, (mine, theirs), strict=True):
            assert (await servers.until_told("added", id_)).status.network_id == network
        for id_ in ids:
            await _until_provisioned(servers, id_)
            read = servers.known[id_]
            assert msgspec.to_builtins(read) == (await system.root.get(f"/api/v2/servers/{id_}")).json

        assert (await system.root.delete(f"/api/v2/servers/{ids[0]}")).status == 202
        await servers.until_marked(ids[0])
        await servers.until_told("deleted", ids[0])
        assert set(servers.known) == {ids[1]}
        assert (await system.root.delete(f"/api/v2/networks/{mine}")).status == 202
        await networks.until_marked(mine)
        await networks.until_told("deleted", mine)
        assert (servers.restarts, networks.restarts) == (1, 1)


@each_transport
async def test_when_permissions_change_everything_is_told_again_as_they_are_now(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport, service="uni-storage") as environment:
        mine = await environment.system.network()
        networks = environment.follow(environment.region.watch_networks())
        assert await networks.until_synced() == {}, "it may not read networks"
        await _grant(environment, "storage-service", Grant(name="region:networks:v2", operations=("read",)))
        await asyncio.sleep(1.1)  # for so long a stream may rely on what it has looked up
        await _touch(environment, mine)
        assert set(await networks.until_synced()) == {mine}
        assert networks.restarts == 2


@each_transport
async def test_who_may_not_read_everywhere_is_refused(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as environment:
        following = environment.follow(environment.identity.watch_all_projects())
        await following.until_synced()
        await _grant(environment, "compute-service", Grant(name="identity:projects", operations=()))
        await asyncio.sleep(1.1)
        await environment.system.identity.project(environment.system.organization, name="more")
        with pytest.raises(Forbidden, match="identity:projects"):
            await following.for_ever()


async def test_a_reader_that_was_away_for_too_long_is_told_again_what_is_there(tmp_path: Path) -> None:
    async with followed(tmp_path, "local") as environment:
        system = environment.system
        gone = await system.identity.project(system.organization, name="gone")
        following = environment.follow(environment.identity.watch_all_projects())
        assert gone in await following.until_synced()
        await _end(system, system.organization, gone)
        await _until_gone(system, gone)
        _forget_changes(system)
        new = await system.identity.project(system.organization, name="new")
        assert set(await following.until_synced()) == {system.project, new}
        assert following.restarts == 2


async def test_what_happens_while_the_connection_is_broken_is_told_when_it_is_back(tmp_path: Path) -> None:
    async with followed(tmp_path, "remote") as environment:
        system, (identity, _) = environment.system, environment.servers
        gone = await system.identity.project(system.organization, name="gone")
        following = environment.follow(environment.identity.watch_all_projects())
        await following.until_synced()
        await identity.stop()
        await _end(system, system.organization, gone)
        await _until_gone(system, gone)
        new = await system.identity.project(system.organization, name="new")
        hearing = asyncio.create_task(following.until_told("added", new))
        await asyncio.sleep(0.3)
        assert not hearing.done()
        await identity.start()
        await hearing
        assert set(following.known) == {system.project, new}
        assert following.restarts == 1, "it went on where it was"


async def test_a_connection_that_was_broken_for_too_long_is_told_again_what_is_there(tmp_path: Path) -> None:
    async with followed(tmp_path, "remote") as environment:
        system, (identity, _) = environment.system, environment.servers
        gone = await system.identity.project(system.organization, name="gone")
        following = environment.follow(environment.identity.watch_all_projects())
        await following.until_synced()
        await identity.stop()
        await _end(system, system.organization, gone)
        await _until_gone(system, gone)
        _forget_changes(system)
        await identity.start()
        assert set(await following.until_synced()) == {system.project}
        assert following.restarts == 2


@each_transport
async def test_a_later_watch_begins_after_a_cursor(tmp_path: Path, transport: str) -> None:
    async with followed(tmp_path, transport) as environment:
        system = environment.system
        network = await system.network()
        await system.server(network, "before")
        cursor = await _cursor(environment)
        after = await system.server(network, "after")
        servers = environment.follow(environment.region.watch_servers(cursor))
        added = False
        while not added:
            told = await servers.next()
            assert isinstance(told, Changed)
            assert told.cursor
            added = (told.type, told.item.metadata.id) == ("added", after)
        assert servers.restarts == 0, "the list was not sent"


@each_transport
@pytest.mark.parametrize("of", ["another reader", "the future", "nothing"])
async def test_a_cursor_that_no_watch_can_begin_after_is_no_obstacle(tmp_path: Path, transport: str, of: str) -> None:
    async with followed(tmp_path, transport) as environment:
        server = await environment.system.server(await environment.system.network())
        version, _, digest = (await _cursor(environment)).partition("-")
        wrong = {
            "another reader": f"{version}-{'0' * len(digest)}",
            "the future": f"{int(version) + 1_000_000}-{digest}",
            "nothing": "nothing",
        }
        servers = environment.follow(environment.region.watch_servers(wrong[of]))
        assert set(await servers.until_synced()) == {server}
        assert servers.restarts == 1


async def _cursor(environment: FollowedServices) -> str:
    """Return the cursor at which all servers were sent."""
    servers = environment.follow(environment.region.watch_servers())
    while not isinstance(told := await servers.next(), Synced):
        pass
    assert told.cursor
    return told.cursor


async def _end(system: RegionEnvironment, organization: str, project: str) -> None:
    path = f"{ORGANIZATIONS}/{organization}/projects/{project}"
    expect(await system.identity.client(system.identity.root).delete(path), 202)


async def _until_gone(system: RegionEnvironment, project: str) -> None:
    async def is_gone() -> bool:
        return project not in (await system.store.list_names(Project)).items

    await system.identity.eventually("the project is gone", is_gone)


def _forget_changes(system: RegionEnvironment) -> None:
    feed = system.store._reader.feed(system.store.registry.of(Project))
    feed.lose_history(feed.reached)


async def _network_of_others(system: RegionEnvironment) -> str:
    other = await system.identity.organization("other")
    project = await system.identity.project(other)
    return await system.network("theirs", organizationId=other, projectId=project, regionId=NORTH)


async def _until_provisioned(servers: Following, id_: str) -> None:
    while servers.known[id_].metadata.provisioning_status != "provisioned":
        assert isinstance(await servers.next(), Changed)


async def _grant(environment: FollowedServices, role: str, grant: Grant) -> None:
    """Let a role have these permissions to something, and no others to that."""
    found = await environment.system.store.get(Role, role_id(role))
    others = tuple(each for each in found.spec.scopes.everywhere if each.name != grant.name)
    scopes = replace(found.spec.scopes, everywhere=(*others, grant))
    await environment.system.store.update(replace(found, spec=replace(found.spec, scopes=scopes)))


async def _touch(environment: FollowedServices, network: str) -> None:
    found = await environment.system.store.get(Network, network)
    await environment.system.store.update(replace(found, spec=replace(found.spec, dns_nameservers=("192.0.2.53",))))


class Horses:
    async def all(self, context: Context, query: HorseQuery) -> Collection[Any, list[HorseRead]]:
        raise NotImplementedError


class StableApi(Protocol):
    def watch_horses(self) -> AsyncGenerator[WatchMessage[HorseRead]]: ...


async def test_who_is_cut_off_before_everything_was_told_is_told_everything_again() -> None:
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
