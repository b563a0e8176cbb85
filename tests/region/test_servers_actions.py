"""What can be done to a server that is there, over a simulated cloud that takes its time."""

from dataclasses import dataclass, replace

from remuda.providers.contract.common import Handle, WrongState
from remuda.providers.contract.servers import CloudConsoles
from remuda.region.kinds.networks import OpenstackIdentity
from remuda.region.servers.routes import SERVERS
from remuda.resources.conventions import identity_of
from tests.kit.environment import options
from tests.kit.region.network_requests import NOT_FOUND, OUTSIDE, forbidden
from tests.kit.region.networks import ABSENT
from tests.kit.region.resource_api import ORG, OTHER_ORG, REGION, member, rejection
from tests.kit.region.servers import DEBIAN, METAL, PERMISSIONS, TENANT, ServersEnvironment

POWER = ("start", "stop", "softreboot", "hardreboot")
CONSOLE = ("consolesessions", "consoleoutput")
ACCESS = (*CONSOLE, "sshkey")
ABSENT_YET = (400, "server is not at its provider at the moment: wait until it is provisioned")
READER = member("bob@example.com", ORG, "region:servers R")


async def _running(region_servers: ServersEnvironment) -> str:
    """Return the path of a server that runs."""
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    assert await _power(region_servers, f"{SERVERS}/{server}") == "Running"
    return f"{SERVERS}/{server}"


async def _power(region_servers: ServersEnvironment, path: str) -> str:
    return str((await region_servers.read(path.rpartition("/")[2]))["status"]["powerState"])


@options(at_work=True, is_instant=False)
async def test_what_a_verb_does_is_seen_at_once_and_so_is_what_comes_of_it(region_servers: ServersEnvironment) -> None:
    path, client = await _running(region_servers), region_servers.servers.ask(TENANT)
    reply = await client.post(f"{path}/stop")
    assert (reply.status, reply.body) == (202, b"")
    assert await _power(region_servers, path) == "Stopping"
    await region_servers.world.clock.sleep(2)
    assert await _power(region_servers, path) == "Stopped"
    assert (await region_servers.read(path.rpartition("/")[2]))["metadata"]["healthStatus"] == "healthy"
    assert (await client.post(f"{path}/start")).status == 202
    assert await _power(region_servers, path) == "Running"
    for how in ("softreboot", "hardreboot"):
        assert (await client.post(f"{path}/{how}")).status == 202
        await region_servers.world.clock.sleep(5)
        assert await _power(region_servers, path) == "Running"


@options(at_work=True)
async def test_what_a_server_cannot_do_now_is_said_in_the_words_that_clients_know(
    region_servers: ServersEnvironment,
) -> None:
    path, client = await _running(region_servers), region_servers.servers.ask(TENANT)
    assert (await client.post(f"{path}/stop")).status == 202
    await region_servers.rest()
    for how in ("softreboot", "hardreboot"):
        reply = await client.post(f"{path}/{how}")
        assert rejection(reply) == (400, "server cannot be rebooted in its current state")
    reply = await client.get(f"{path}/consolesessions")
    assert rejection(reply) == (400, "server cannot be accessed in its current state")


@options(at_work=True)
async def test_starting_a_running_server_and_stopping_a_stopped_one_is_no_error(
    region_servers: ServersEnvironment,
) -> None:
    path, client = await _running(region_servers), region_servers.servers.ask(TENANT)
    for verb, power in (("start", "Running"), ("stop", "Stopped"), ("stop", "Stopped"), ("start", "Running")):
        assert (await client.post(f"{path}/{verb}")).status == 202
        await region_servers.rest()
        assert await _power(region_servers, path) == power


@dataclass(frozen=True)
class Dumb:
    """Consoles of a cloud that keeps no output."""

    seen: CloudConsoles

    async def open_console(self, handle: Handle, *, viewer: str = "") -> str:
        """Show a screen."""
        return await self.seen.open_console(handle, viewer=viewer)

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        """Show nothing of it."""
        del lines
        raise WrongState("server", handle.name, state="mute")


@options(at_work=True)
async def test_a_console_that_cannot_be_read_now_is_said_so_too(region_servers: ServersEnvironment) -> None:
    path = await _running(region_servers)
    provider = region_servers.cloud.provider
    assert provider.consoles is not None
    region_servers.providers[REGION] = replace(provider, consoles=Dumb(provider.consoles))
    reply = await region_servers.servers.ask(TENANT).get(f"{path}/consoleoutput")
    assert rejection(reply) == (400, "server console output cannot be retrieved in its current state")


@options(at_work=True, is_instant=False)
async def test_what_is_not_at_its_provider_yet_or_is_being_worked_on_there_says_what_to_wait_for(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    client, path = region_servers.servers.ask(TENANT), f"{SERVERS}/{server}"
    told = set()
    while (reply := await client.post(f"{path}/start")).status != 202:
        told.add(rejection(reply))
        await region_servers.world.clock.sleep(0.02)
    busy = (400, "server is busy at its provider: try again in a moment")
    assert told == {ABSENT_YET, busy, (400, "server cannot be started in its current state")}
    assert await _power(region_servers, path) == "Running"


@options(at_work=True, is_instant=False)
async def test_the_console_of_a_server_that_waits_for_its_machine_is_empty(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network(), flavorId=METAL, imageId=DEBIAN)
    await region_servers.world.clock.sleep(1.5)
    assert (await region_servers.read(server))["status"]["powerState"] == "Queued"
    client, path = region_servers.servers.ask(TENANT), f"{SERVERS}/{server}"
    assert (await client.get(f"{path}/consoleoutput")).json == {"contents": ""}
    for verb, done in (("start", "started"), ("stop", "stopped"), ("softreboot", "rebooted")):
        reply = await client.post(f"{path}/{verb}")
        assert rejection(reply) == (400, f"server cannot be {done} in its current state")


@options(at_work=True)
async def test_the_console_is_seen_and_read_as_far_as_is_asked(region_servers: ServersEnvironment) -> None:
    path, client = await _running(region_servers), region_servers.servers.ask(TENANT)
    first, second = [(await client.get(f"{path}/consolesessions")).json["url"] for _ in range(2)]
    assert first.startswith("https://")
    assert first != second
    whole = (await client.get(f"{path}/consoleoutput")).json["contents"]
    assert "login:" in whole
    last = (await client.get(f"{path}/consoleoutput", [("length", "3")])).json["contents"]
    assert whole.splitlines()[-3:] == last.splitlines()
    for length in ("0", "-1", "x", "100001"):
        assert rejection(await client.get(f"{path}/consoleoutput", [("length", length)]))[0] == 400


@options(at_work=True)
async def test_the_key_of_a_server_opens_it_and_is_there_only_where_a_key_does(
    region_servers: ServersEnvironment,
) -> None:
    network, client = await region_servers.make_network(), region_servers.servers.ask(TENANT)
    server = await region_servers.make_server(network)
    reply = await client.get(f"{SERVERS}/{server}/sshkey")
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    record = await region_servers.store.get(OpenstackIdentity, identity_of(await region_servers.stored(server)))
    assert record.spec.ssh_private_key is not None
    assert reply.json == {"privateKey": record.spec.ssh_private_key.reveal()}
    authority = await region_servers.make_authority()
    closed = await region_servers.make_server(network, "closed", sshInjection="none")
    certified = await region_servers.make_server(network, "certified", sshCertificateAuthorityId=authority)
    for other in (closed, certified):
        assert rejection(await client.get(f"{SERVERS}/{other}/sshkey")) == NOT_FOUND


@options(at_work=True)
async def test_whoever_does_something_to_a_server_may_change_it_and_only_the_output_is_read(
    region_servers: ServersEnvironment,
) -> None:
    path = await _running(region_servers)
    reader = region_servers.servers.ask(READER)
    needs_update = forbidden("update", OUTSIDE, "region:servers")
    for verb in POWER:
        assert rejection(await reader.post(f"{path}/{verb}")) == needs_update
    for what in ("consolesessions", "sshkey"):
        assert rejection(await reader.get(f"{path}/{what}")) == needs_update
    assert (await reader.get(f"{path}/consoleoutput")).status == 200
    blind = region_servers.servers.ask(member("tom@example.com", ORG, "region:servers U"))
    assert rejection(await blind.post(f"{path}/stop")) == forbidden("read", OUTSIDE, "region:servers")
    stranger = region_servers.servers.ask(member("eve@example.com", OTHER_ORG, PERMISSIONS))
    replies = [await stranger.post(f"{path}/{verb}") for verb in POWER]
    replies += [await stranger.get(f"{path}/{what}") for what in ACCESS]
    assert [rejection(reply) for reply in replies] == [NOT_FOUND] * len(replies)
    assert await _power(region_servers, path) == "Running"


async def test_a_server_that_is_not_at_the_cloud_yet_is_told_from_one_that_is_not_there(
    region_servers: ServersEnvironment,
) -> None:
    server, client = (
        await region_servers.make_server(await region_servers.make_network()),
        region_servers.servers.ask(TENANT),
    )
    for name, told in ((server, ABSENT_YET), (ABSENT, NOT_FOUND)):
        replies = [await client.post(f"{SERVERS}/{name}/{verb}") for verb in POWER]
        replies += [await client.get(f"{SERVERS}/{name}/{what}") for what in CONSOLE]
        assert [rejection(reply) for reply in replies] == [told] * len(replies)
    for name in (server, ABSENT):
        assert rejection(await client.get(f"{SERVERS}/{name}/sshkey")) == NOT_FOUND


@options(at_work=True)
async def test_a_verb_is_not_done_while_the_cloud_does_not_answer(region_servers: ServersEnvironment) -> None:
    path, client = await _running(region_servers), region_servers.servers.ask(TENANT)
    region_servers.at_fault("error", "stop_server")
    reply = await client.post(f"{path}/stop")
    assert (reply.status, reply.json["error"]) == (503, "unavailable")
    assert await _power(region_servers, path) == "Running"
    region_servers.at_fault("timeout_after_write", "stop_server")
    assert (await client.post(f"{path}/stop")).status == 503, "nobody knows what became of it"
    assert (await client.post(f"{path}/stop")).status == 400, "nor is it sent twice"
    await region_servers.rest()
    assert await _power(region_servers, path) == "Stopped"


@options(at_work=True)
async def test_a_verb_that_was_done_is_done_even_if_nobody_can_see_it_now(region_servers: ServersEnvironment) -> None:
    path, client = await _running(region_servers), region_servers.servers.ask(TENANT)
    for nth in range(8):
        region_servers.at_fault("error", "find_server", after=nth)
    assert (await client.post(f"{path}/stop")).status == 202
    await region_servers.rest()
    assert await _power(region_servers, path) == "Stopped"
