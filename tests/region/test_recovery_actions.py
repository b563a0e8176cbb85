"""What an operator can do where a controller cannot go on by itself, over a region that runs."""

from typing import Any

import msgspec
import pytest

from remuda.access.principal import Context
from remuda.http.audit import AuditRecord, subject_of_organization
from remuda.kernel.ids import random_id
from remuda.providers.contract.common import Handle
from remuda.providers.contract.servers import CloudPortSpec
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.orphans import Orphan, claimed
from remuda.region.kinds.servers import SERVER, Server
from remuda.region.recovery.schema import AdoptWrite
from remuda.resources.conventions import identity_of
from tests.kit.environment import options
from tests.kit.identity.environment import expect
from tests.kit.region.environment import RegionEnvironment, unwatched
from tests.kit.region.monitor import OPERATOR, Monitored
from tests.kit.resource_api import everywhere, rejection

RECOVERY = "/api/v2/recovery"
ORPHANS = f"{RECOVERY}/orphans"
ABSENT = "e0000000-0000-4000-8000-00000000000e"
REASON = {"reason": "its host burned"}


async def abandoned_server(monitored: Monitored, network: str, **spec: Any) -> Any:
    """Make a server, and let its object go without it; return what it was."""
    region = monitored.region
    server = await region.server(network, **spec)
    read = await monitored.settled(server)
    driver = region.app.running_controllers["servers"]
    await driver.stop()
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    assert (await monitored.operator.post(f"{RECOVERY}/servers/{server}/abandon", REASON)).status == 202
    assert (await monitored.operator.post(f"{RECOVERY}/servers/{server}/abandon", REASON)).status == 202
    await driver.start()
    await region.until_gone(f"/api/v2/servers/{server}")
    return read


@options(settings=unwatched())
async def test_a_server_that_was_given_up_is_tried_again(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    server = await region.server(await region.network())

    async def is_given_up() -> bool:
        for each in region.north.operator.servers():
            if each.state == "building":
                region.north.operator.fail(each.handle.name, "no such luck")
        return (await region.store.get(Server, server)).status.provider_create_failures == 3

    await region.identity.eventually("it is given up", is_given_up)
    await region.until(f"/api/v2/servers/{server}", "error")
    assert (await monitored.operator.post(f"{RECOVERY}/servers/{server}/retry")).status == 202
    await monitored.settled(server)
    assert (await region.store.get(Server, server)).status.phase == "Running"


@options(settings=unwatched())
async def test_a_retry_has_a_controller_look_at_once(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    place, provider = await monitored.place(network), monitored.provider
    assert provider.networks is not None
    await provider.networks.remove_network(place)
    await region.clock.sleep(5)
    assert (await monitored.operator.post(f"{RECOVERY}/networks/{network}/retry")).status == 202
    await region.clock.sleep(5)
    assert await provider.networks.find_network(place) is not None


@options(settings=unwatched())
async def test_what_cannot_be_removed_is_abandoned_from_the_leaf_to_the_root(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    place, provider = await monitored.place(network), monitored.provider
    assert provider.ports is not None
    handle = Handle(place.tenancy, "by-hand")
    spec = CloudPortSpec(handle=handle, network=place.name, address="10.0.200.1", mac="02:00:00:00:00:01")
    await provider.ports.converge_port(spec)
    home = identity_of(await region.store.get(Network, network))
    not_deleted = await monitored.operator.post(f"{RECOVERY}/networks/{network}/abandon", REASON)
    assert rejection(not_deleted)[0] == 422
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
    await region.clock.sleep(120)
    assert (await region.store.get(Network, network)).is_deleting
    for kind, name in (("networks", network), ("identities", home)):
        assert (await monitored.operator.post(f"{RECOVERY}/{kind}/{name}/abandon", REASON)).status == 202
        await region.clock.sleep(20)
    assert (await region.store.list(Network)).items == []
    assert (await region.store.list(Identity)).items == []
    listed = expect(await monitored.operator.get(ORPHANS), 200)
    assert sorted((each["subject"], each["cause"], each["reason"]) for each in listed) == [
        ("network", "ObjectAbandoned", REASON["reason"]),
        ("tenancy", "ObjectAbandoned", REASON["reason"]),
    ]
    assert await monitored.look(times=4) == [
        ("network", "ObjectAbandoned"),
        ("port", "ObjectUnknown"),
        ("tenancy", "ObjectAbandoned"),
    ]
    for subject in ("port", "network", "tenancy"):
        path = f"{ORPHANS}/{await monitored.orphan(subject)}/forget"
        assert (await monitored.operator.post(path, {"remove": True})).status == 202
    assert await monitored.look(times=2) == []


@options(settings=unwatched())
async def test_an_abandoned_server_keeps_its_address_until_it_is_gone(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    read = await abandoned_server(monitored, network)
    assert await monitored.look(times=4) == [("port", "ObjectAbandoned"), ("server", "ObjectAbandoned")]
    (kept,) = (await region.store.list(Address)).items
    assert kept.spec.ip == read["status"]["privateIP"]
    orphan = await monitored.orphan("port")
    in_use = await monitored.operator.post(f"{ORPHANS}/{orphan}/forget", {"remove": True})
    assert in_use.status == 409
    for subject in ("server", "port"):
        path = f"{ORPHANS}/{await monitored.orphan(subject)}/forget"
        assert (await monitored.operator.post(path, {"remove": True})).status == 202
        await region.clock.sleep(5)
    assert await monitored.look(times=2) == []
    assert (await region.store.list(Address)).items == []
    assert region.north.operator.servers() == []


@options(settings=unwatched())
async def test_an_abandoned_server_that_had_nothing_left_at_its_provider_gives_its_address_back_all_the_same(
    region: RegionEnvironment,
) -> None:
    monitored = Monitored(region)
    server = await region.server(await region.network())
    await monitored.settled(server)
    driver, provider = region.app.running_controllers["servers"], monitored.provider
    await driver.stop()
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    region.north.operator.vanish(server)
    assert provider.ports is not None
    (port,) = [each async for part in provider.ports.ports() for each in part]
    await provider.ports.remove_port(port.spec.handle)
    assert (await monitored.operator.post(f"{RECOVERY}/servers/{server}/abandon", REASON)).status == 202
    await driver.start()
    await region.until_gone(f"/api/v2/servers/{server}")
    assert [each.spec.subject for each in await monitored.orphans()] == ["port"]
    assert await monitored.look(times=2) == []
    assert (await region.store.list(Address)).items == []


@options(settings=unwatched())
async def test_what_has_an_address_is_not_forgotten_before_it_is_gone(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    await abandoned_server(monitored, await region.network())
    path = f"{ORPHANS}/{await monitored.orphan('port')}/forget"
    refused = await monitored.operator.post(path, {})
    assert rejection(refused) == (
        422,
        "orphan has an address of its network: delete the orphan, and its record is deleted after it.",
    )
    assert len(await monitored.orphans()) == 2


@options(settings=unwatched())
async def test_a_server_that_was_adopted_and_abandoned_again_keeps_its_address_until_it_is_gone(
    region: RegionEnvironment,
) -> None:
    monitored = Monitored(region)
    network = await region.network()
    read = await abandoned_server(monitored, network)
    server, path = read["metadata"]["id"], f"{ORPHANS}/{await monitored.orphan('server')}/adopt"
    driver = region.app.running_controllers["servers"]
    await driver.stop()
    assert (await monitored.operator.post(path, {"name": "server", "networkId": network})).status == 201
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    assert (await monitored.operator.post(f"{RECOVERY}/servers/{server}/abandon", REASON)).status == 202
    await driver.start()
    await region.until_gone(f"/api/v2/servers/{server}")
    assert [each.spec.ip for each in (await region.store.list(Address)).items] == [read["status"]["privateIP"]]
    for subject in ("server", "port"):
        path = f"{ORPHANS}/{await monitored.orphan(subject)}/forget"
        assert (await monitored.operator.post(path, {"remove": True})).status == 202
        await region.clock.sleep(5)
    assert await monitored.look(times=2) == []
    assert (await region.store.list(Address)).items == []


@pytest.mark.parametrize("kind", ["loadbalancers", "securitygroups"])
@options(settings=unwatched())
async def test_what_is_on_a_network_is_abandoned_with_an_orphan_in_its_place(
    region: RegionEnvironment, kind: str
) -> None:
    monitored = Monitored(region)
    network = await region.network()
    member = {"address": "10.0.1.10", "port": 8080}
    listener = {"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": [member]}}
    spec = {"networkId": network, "publicIP": False, "listeners": [listener], "rules": []}
    name = await region.made(f"/api/v2/{kind}", "thing", spec)
    await region.until(f"/api/v2/{kind}/{name}", "provisioned")
    driver = region.app.running_controllers[kind]
    await driver.stop()
    assert (await region.root.delete(f"/api/v2/{kind}/{name}")).status == 202
    assert (await monitored.operator.post(f"{RECOVERY}/{kind}/{name}/abandon", REASON)).status == 202
    await driver.start()
    await region.until_gone(f"/api/v2/{kind}/{name}")
    (kept,) = await monitored.orphans()
    assert (kept.spec.object_id, kept.spec.cause) == (name, "ObjectAbandoned")
    assert await monitored.look(times=3) == [(kept.spec.subject, "ObjectAbandoned")]
    path = f"{ORPHANS}/{kept.name}/forget"
    assert (await monitored.operator.post(path, {"remove": True})).status == 202
    assert await monitored.look(times=2) == []
    assert (await region.store.list(Address)).items == []


@options(settings=unwatched())
async def test_an_abandonment_is_audited_and_told_in_the_timeline(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    server = (await abandoned_server(monitored, await region.network()))["metadata"]["id"]
    audit = await region.store.read_back("audit", subject_of_organization(region.organization))
    records = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in audit.entries]
    mine = [each for each in records if each.actor.subject == OPERATOR.subject]
    assert [each.operation.route for each in mine] == ["/api/v2/recovery/{kind}/{id}/abandon"]
    timeline = await region.store.read_back("timeline", f"{SERVER.qualified}/{server}")
    told_of = [msgspec.json.decode(entry.data) for entry in timeline.entries]
    assert [each["reason"] for each in told_of if each["event"] == "Abandoned"] == [REASON["reason"]]


@options(settings=unwatched())
async def test_an_adoption_whose_answer_was_lost_is_done_once(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    await abandoned_server(monitored, network)
    orphan, wanted = await monitored.orphan("server"), AdoptWrite(name="server", network_id=network)
    context = Context(principal=OPERATOR, operation=random_id(region.app.ports.randomness))
    first = await monitored.recovery.adopt(context, orphan, wanted)
    again = await monitored.recovery.adopt(context, orphan, wanted)
    assert first.uid == again.uid
    assert len((await region.store.list(Server)).items) == 1


@options(settings=unwatched())
async def test_an_orphan_that_is_only_forgotten_is_found_again(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    await abandoned_server(monitored, await region.network())
    orphan = await monitored.orphan("server")
    assert (await monitored.operator.post(f"{ORPHANS}/{orphan}/forget", {})).status == 202
    assert [each.spec.subject for each in await monitored.orphans()] == ["port"]
    assert await monitored.look(times=2) == [("port", "ObjectAbandoned"), ("server", "ObjectAbandoned")]
    assert len(region.north.operator.servers()) == 1


@options(settings=unwatched())
async def test_a_lost_server_is_adopted_where_it_is(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    before = await abandoned_server(monitored, network, networking={"publicIP": True})
    (at_cloud,) = region.north.operator.servers()
    path = f"{ORPHANS}/{await monitored.orphan('server')}/adopt"
    wrong = await monitored.operator.post(path, {"name": "another", "networkId": network})
    assert rejection(wrong)[0] == 422
    made = expect(await monitored.operator.post(path, {"name": "server", "networkId": network}), 201)
    server = made["metadata"]["id"]
    assert server == before["metadata"]["id"]
    after = await monitored.settled(server)
    for field in ("privateIP", "publicIP", "macAddress", "powerState"):
        assert after["status"][field] == before["status"][field]
    assert region.north.operator.servers() == [at_cloud]
    assert await monitored.look(times=3) == []
    await region.clock.sleep(600)
    assert region.north.operator.servers() == [at_cloud]
    assert (await region.root.post(f"/api/v2/servers/{server}/stop")).status == 202
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    await region.until_gone(f"/api/v2/servers/{server}")
    assert region.north.operator.servers() == []
    assert (await region.store.list(Address)).items == []


@options(settings=unwatched())
async def test_what_is_being_removed_is_not_adopted(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    await abandoned_server(monitored, network)
    orphan, wanted = await monitored.orphan("server"), {"name": "server", "networkId": network}
    await region.store.update(claimed(await region.store.get(Orphan, orphan), "removal", region.clock.now()))
    status, sentence = rejection(await monitored.operator.post(f"{ORPHANS}/{orphan}/adopt", wanted))
    assert (status, "is being deleted:" in sentence) == (422, True), "before the provider has heard of it"
    assert (await monitored.operator.post(f"{ORPHANS}/{orphan}/forget", {"remove": True})).status == 202
    assert [each.state for each in region.north.operator.servers()] == ["removing"]
    status, sentence = rejection(await monitored.operator.post(f"{ORPHANS}/{orphan}/adopt", wanted))
    assert (status, "is being deleted at its provider" in sentence) == (422, True)
    assert (await region.store.list(Server)).items == []


@options(settings=unwatched())
async def test_what_is_being_adopted_is_not_removed_unless_that_was_cut_short(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    await abandoned_server(monitored, await region.network())
    orphan = await monitored.orphan("server")
    await region.store.update(claimed(await region.store.get(Orphan, orphan), "adoption", region.clock.now()))
    status, sentence = rejection(await monitored.operator.post(f"{ORPHANS}/{orphan}/forget", {"remove": True}))
    assert (status, "is being adopted" in sentence) == (422, True)
    assert [each.state for each in region.north.operator.servers()] == ["running"]
    await region.clock.sleep(360)
    assert (await monitored.operator.post(f"{ORPHANS}/{orphan}/forget", {"remove": True})).status == 202


@options(settings=unwatched())
async def test_a_replacement_of_an_adopted_server_takes_its_place(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    before = await abandoned_server(monitored, network)
    path = f"{ORPHANS}/{await monitored.orphan('server')}/adopt"
    server = expect(await monitored.operator.post(path, {"name": "server", "networkId": network}), 201)["metadata"][
        "id"
    ]
    await monitored.settled(server)
    spec = before["spec"]
    body = {"flavorId": spec["flavorId"], "imageId": spec["imageId"]}
    compute = region.service("unikorn-compute")
    assert (await compute.post(f"/api/v2/servers/{server}/replace", body)).status == 202
    await region.clock.sleep(30)
    after = await monitored.settled(server)
    assert after["status"]["privateIP"] == before["status"]["privateIP"]
    assert [each.handle.name.rpartition(".")[2] for each in region.north.operator.servers()] == ["1"]
    assert await monitored.look(times=3) == []


@options(settings=unwatched())
async def test_only_a_server_on_its_own_network_is_adopted(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network, other = await region.network(), await region.network("other")
    await abandoned_server(monitored, network)
    server, port = await monitored.orphan("server"), await monitored.orphan("port")
    ask = monitored.operator
    assert rejection(await ask.post(f"{ORPHANS}/{port}/adopt", {"name": "server", "networkId": network}))[0] == 422
    assert rejection(await ask.post(f"{ORPHANS}/{server}/adopt", {"name": "server", "networkId": other}))[0] == 422
    await region.server(network)
    taken = await ask.post(f"{ORPHANS}/{server}/adopt", {"name": "server", "networkId": network})
    assert rejection(taken)[0] == 409
    assert len(await monitored.orphans()) == 2


@options(settings=unwatched())
async def test_nobody_but_an_operator_may_recover_anything(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    before = await region.store.get(Network, network)
    stranger = monitored.asking(everywhere("ann@example.com", "region:networks:v2 CRUD"))
    reader = monitored.asking(everywhere("bob@example.com", "region:regions R"))
    for ask in (stranger, reader):
        assert (await ask.get(ORPHANS)).status == 403
        assert (await ask.post(f"{RECOVERY}/networks/{network}/retry")).status == 403
        assert (await ask.post(f"{RECOVERY}/networks/{network}/abandon", REASON)).status == 403
        assert (await ask.post(f"{ORPHANS}/{ABSENT}/forget", {})).status == 403
        assert (await ask.post(f"{ORPHANS}/{ABSENT}/adopt", {"name": "x", "networkId": network})).status == 403
        assert (await ask.post(f"{RECOVERY}/deletions/resume")).status == 403
    assert (await region.store.get(Network, network)).metadata.annotations == before.metadata.annotations


@options(settings=unwatched())
async def test_what_is_not_there_cannot_be_recovered(region: RegionEnvironment) -> None:
    ask = Monitored(region).operator
    assert (await ask.post(f"{RECOVERY}/servers/{ABSENT}/retry")).status == 404
    assert (await ask.post(f"{RECOVERY}/servers/{ABSENT}/abandon", REASON)).status == 404
    assert (await ask.post(f"{ORPHANS}/{ABSENT}/forget", {})).status == 404
    assert (await ask.post(f"{RECOVERY}/flavors/{ABSENT}/retry")).status == 400
    assert (await ask.post(f"{RECOVERY}/servers/{ABSENT}/abandon", {"reason": ""})).status == 400
