"""User data of servers is shown to those who may update them: services, and not platform readers."""

from remuda.region.kinds.servers import Server
from remuda.region.servers.routes import SERVERS
from tests.kit.region.resource_api import ORG, member
from tests.kit.region.servers import TENANT, ServersEnvironment, encoded, wanted

DATA = encoded("#cloud-config\npassword: planted-marker-77a1\n")
READER = member("reader@example.com", ORG, "region:networks:v2 R, region:servers R")


async def test_a_reader_sees_a_server_without_its_user_data(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    created = await region_servers.servers.ask(TENANT).post(SERVERS, wanted(network, userData=DATA))
    assert created.status == 201
    path = f"{SERVERS}/{created.json['metadata']['id']}"
    whole, shown = (
        await region_servers.servers.ask(TENANT).get(path),
        await region_servers.servers.ask(READER).get(path),
    )
    body = whole.json
    assert body["spec"].pop("userData") == DATA
    assert shown.json == body
    assert whole.headers["cache-control"] == "no-store"
    assert shown.headers["etag"] != whole.headers["etag"]
    for reply in (shown, await region_servers.servers.ask(READER).get(SERVERS)):
        assert reply.status == 200
        assert DATA.encode() not in reply.body
    assert DATA.encode() in (await region_servers.servers.ask(TENANT).get(SERVERS)).body


async def test_an_update_without_user_data_removes_it(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    created = await region_servers.servers.ask(TENANT).post(SERVERS, wanted(network, userData=DATA))
    name, spec = created.json["metadata"]["id"], created.json["spec"]
    del spec["userData"]
    body = {"metadata": {"name": created.json["metadata"]["name"]}, "spec": spec}
    assert (await region_servers.servers.ask(TENANT).put(f"{SERVERS}/{name}", body)).status == 202
    assert (await region_servers.store.get(Server, name)).spec.user_data is None
