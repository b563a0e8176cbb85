"""The filter of lists by name: every list of things with names has it, whole, in pages and watched."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from remuda.compute.app import TABLE as COMPUTE
from remuda.http.routes import AnyRoute
from remuda.http.schema import NamedListQuery, NameQuery
from remuda.identity.app import TABLE as IDENTITY
from remuda.region.app import TABLE as REGION
from tests.kit.asgi.client import Client
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.environment import options
from tests.kit.identity.environment import expect
from tests.kit.region.environment import NORTH

TABLES = (IDENTITY, REGION, COMPUTE)
NAMELESS = {
    *("list_revocations", "list_audit", "list_system_audit", "list_suspensions", "list_orphans"),
    *("list_instance_timeline", "list_instance_operations"),
}
"""Lists of what has no name that a caller gave."""


def lists() -> Iterator[AnyRoute]:
    return (route for table in TABLES for route in table.routes if route.method == "GET" and route.is_list)


def test_every_list_of_things_with_names_has_the_filter_and_no_other_list() -> None:
    named = {
        route.name
        for route in lists()
        if {"metadata", "name"} & get_type_hints(get_args(route.response_type)[0]).keys()
    }
    taking = {route.name for route in lists() if issubclass(route.query_type, NameQuery | NamedListQuery)}
    assert named - {"list_orphans"} == taking
    assert {route.name for route in lists()} - taking == NAMELESS


@options(is_instant=True)
async def test_every_list_by_name_has_what_is_so_named(compute: ComputeEnvironment) -> None:
    identity, region = compute.region.identity, compute.region
    network = await region.network(name="north")
    await region.network(name="south")
    for name in ("web", "db"):
        await compute.instance(network, name)
    group = await identity.group(region.organization, "reader", name="readers")
    await identity.group(region.organization, name="writers")
    await identity.user("ann@example.com", region.organization, group)
    await identity.account(region.organization, group, name="robot")
    await identity.organization("apex")
    of = {"organizationID": region.organization, "regionID": NORTH}
    clients = (identity.client(identity.root), region.root, compute.root)
    filtered = 0
    for client, table in zip(clients, TABLES, strict=True):
        for route in table.routes:
            if route.method != "GET" or not issubclass(route.query_type, NameQuery | NamedListQuery):
                continue
            path = re.sub(r"\{(\w+)\}", lambda found: of[found[1]], route.path)
            filtered += await check_names(client, path, is_paged=route.is_paged)
    assert filtered >= 25


async def check_names(client: Client, path: str, *, is_paged: bool) -> int:
    """Check the filter with every name in a list, and one that is not; return how many names there were."""
    everything = expect(await client.get(path), 200)
    names = {name_of(each) for each in everything}
    for name in (*names, "nothing-is-called-this"):
        wanted = [each for each in everything if name_of(each) == name]
        assert expect(await client.get(path, {"name": name}), 200) == wanted, (path, name)
        if is_paged:
            assert await pages(client, path, {"name": name, "limit": "1"}) == wanted, (path, name)
    return len(names)


def name_of(item: Any) -> str:
    return str(item.get("metadata", item)["name"])


async def pages(client: Client, path: str, query: dict[str, str]) -> list[Any]:
    found, reply = list[Any](), await client.get(path, query)
    while True:
        found += expect(reply, 200)
        if "x-continue" not in reply.headers:
            return found
        assert "name=" in reply.headers["link"]
        reply = await client.get(path, query | {"continue": reply.headers["x-continue"]})
