"""What the audit says of verbs: the object that something was done to, and what was done, however it ended."""

import msgspec

from remuda.app import tables
from remuda.http.audit import STREAM, AuditRecord, subject_of_organization
from remuda.region.servers.routes import SERVERS
from tests.kit.environment import options
from tests.kit.region.networks import ABSENT
from tests.kit.region.resource_api import ORG
from tests.kit.region.servers import TENANT, ServersEnvironment

ACTIONS = {
    "identity": {"confirm", "renew", "rotate"},
    "region": {
        "abandon",
        "adopt",
        "check",
        "consolesessions",
        "detail",
        "forget",
        "hardreboot",
        "resume",
        "replace",
        "retry",
        "snapshot",
        "softreboot",
        "sshkey",
        "start",
        "stop",
    },
    "compute": {"consolesession", "reboot", "rebuild", "resume", "snapshot", "sshkey", "start", "stop"},
}


async def _audited(region_servers: ServersEnvironment) -> list[tuple[str, str, str, int]]:
    page = await region_servers.store.read(STREAM, subject_of_organization(ORG))
    records = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in page.entries]
    return [
        (each.operation.action, each.resource.type, each.resource.id, each.result.status)
        for each in records
        if each.operation.action
    ]


@options(at_work=True)
async def test_verbs_name_the_server_and_what_was_done_to_it_also_if_they_were_refused(
    region_servers: ServersEnvironment,
) -> None:
    server, client = (
        await region_servers.make_server(await region_servers.make_network()),
        region_servers.servers.ask(TENANT),
    )
    await region_servers.rest()
    await client.post(f"{SERVERS}/{server}/stop")
    await region_servers.rest()
    for verb in ("stop", "softreboot", "start"):
        await client.post(f"{SERVERS}/{server}/{verb}")
    await client.post(f"{SERVERS}/{ABSENT}/hardreboot")
    assert await _audited(region_servers) == [
        ("stop", "servers", server, 202),
        ("stop", "servers", server, 202),
        ("softreboot", "servers", server, 400),
        ("start", "servers", server, 202),
        ("hardreboot", "servers", ABSENT, 404),
    ]


def test_what_is_done_to_objects_is_known_for_every_service() -> None:
    for service, actions in ACTIONS.items():
        table = tables()[service].table
        found = {table.action_of(route) for route in table.routes if route.scope != "public"}
        assert found - {""} == actions, "a path that ends in what is done to an object, or in something else"
