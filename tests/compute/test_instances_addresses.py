"""The addresses of an instance: what is told where a server that is recreated has others."""

from msgspec.structs import replace

from remuda.compute.instances.status import changed_addresses, with_addresses
from remuda.compute.kinds import Addresses, ComputeInstance, InstanceNetworking
from remuda.region.servers.schema import ServerRead
from tests.kit.compute.controllers import delete_server, made, network_of, rest
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.explanations import instance, server
from tests.kit.compute.requests import at

FIRST = {"private_ip": "10.0.0.1", "public_ip": "198.51.100.1", "mac_address": "02:00:00:00:00:01"}
SECOND = {"private_ip": "10.0.0.2", "public_ip": "198.51.100.1", "mac_address": "02:00:00:00:00:02"}


def at_addresses(**addresses: str) -> ServerRead:
    return server(**addresses)


def on(found: ComputeInstance, **addresses: str) -> ComputeInstance:
    return with_addresses(found, at_addresses(**addresses))


def public(*, is_wanted: bool = True) -> ComputeInstance:
    return instance(networking=InstanceNetworking(public_ip=is_wanted))


def test_what_it_had_is_remembered_until_its_server_has_others() -> None:
    first = on(public(), **FIRST)
    between = on(first)
    second = on(between, **SECOND)
    assert (between.status.private_ip, between.status.previous_addresses) == ("", Addresses(**FIRST))
    assert on(between) == between, "it shows its server as it is"
    assert second.status.previous_addresses is None
    assert changed_addresses(first.status, between.status) == {}
    assert changed_addresses(between.status, second.status) == {
        "privateIP": {"was": "10.0.0.1", "now": "10.0.0.2"},
        "macAddress": {"was": "02:00:00:00:00:01", "now": "02:00:00:00:00:02"},
    }


def test_addresses_that_stay_or_come_for_the_first_time_are_no_others() -> None:
    new = public()
    first = on(new, **FIRST)
    assert changed_addresses(new.status, first.status) == {}
    assert changed_addresses(first.status, on(on(first), **FIRST).status) == {}


def test_a_public_address_that_nobody_wants_any_more_is_not_remembered() -> None:
    unwanted = replace(on(public(), **FIRST), spec=public(is_wanted=False).spec)
    assert on(unwanted, **FIRST | {"public_ip": ""}).status.previous_addresses is None


async def test_an_instance_whose_server_is_recreated_tells_what_its_addresses_were_and_are(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    found = await made(compute, network)
    before = (await compute.read(found))["status"]
    await delete_server(compute, found)
    await compute.region.server(network, "taker")
    await rest(compute, 100)
    after = (await compute.read(found))["status"]
    events = (await compute.root.get(f"{at(found)}/timeline")).json
    (told,) = [each for each in events if each["event"] == "AddressesChanged"]
    assert before["privateIP"] != after["privateIP"]
    assert told["cause"]["type"] == "observation"
    assert told["message"] == (
        f"The addresses of the instance changed: private IP from {before['privateIP']} to {after['privateIP']}, "
        f"MAC address from {before['macAddress']} to {after['macAddress']}."
    )
    assert not [each["message"] for each in events if each["message"].endswith(": .")]
