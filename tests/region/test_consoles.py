"""The screens of simulated servers, as a browser sees them in the process that runs the cloud."""

import base64
from functools import partial
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from remuda.app.providers import CONSOLES, CONSOLES_PREFIX, Screens, screens_api
from remuda.http.server.health import Mounted, Mounts
from remuda.identity.kinds.users import ServiceAccount, ServiceAccountSpec, Suspension, User, UserSpec, user_id
from remuda.identity.lookups import was_suspended_since
from remuda.store.objects import Metadata
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply, contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.environment import options
from tests.kit.identity.environment import expect
from tests.kit.region.environment import RegionEnvironment

CLOUD, ANN = "sim-north", "ann@example.com"
MARKUP = base64.b64encode(b'#cloud-config\nhostname: "<b>web</b>"\n').decode()


class Screen:
    """Somebody with a browser."""

    def __init__(self, region: RegionEnvironment) -> None:
        screens = Screens(
            consoles={CLOUD: region.north.consoles},
            was_suspended=partial(was_suspended_since, region.app.ports.store),
        )
        app = screens_api(region.app, screens, url="https://cloud.example.com")
        validated = Validated(app, contract_of(CONSOLES))
        self._client = Client(app=Mounts([Mounted(CONSOLES_PREFIX, CONSOLES, validated)], validated))

    async def see(self, url: str) -> Reply:
        """Open an address, wherever that is said to be."""
        found = urlsplit(url)
        path = f"{CONSOLES_PREFIX}/consoles{found.path}"
        return await self._client.get(path, parse_qsl(found.query))


async def opened(region: RegionEnvironment, server: str) -> str:
    """Return the address of a server's console."""
    client = region.service("unikorn-compute", actor=ANN)
    return str(expect(await client.get(f"/api/v2/servers/{server}/consolesessions"), 200)["url"])


async def running(region: RegionEnvironment, name: str = "web", **spec: str) -> str:
    server = await region.server(await region.network(name), name, **spec)
    await region.until(f"/api/v2/servers/{server}", "provisioned")
    return server


async def test_a_console_is_shown_as_it_is_written_to_whoever_has_its_address(region: RegionEnvironment) -> None:
    screen, server = Screen(region), await running(region)
    url = await opened(region, server)
    page = await screen.see(url)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = page.body.decode()
    assert server in text
    assert "Linux version" in text
    assert "<script" not in text
    await region.clock.sleep(60)
    assert "login:" in (await screen.see(url)).body.decode()


@options(is_instant=True)
async def test_what_a_server_writes_is_text(region: RegionEnvironment) -> None:
    page = await Screen(region).see(await opened(region, await running(region, userData=MARKUP)))
    assert "&lt;b&gt;web&lt;/b&gt;" in page.body.decode()
    assert "<b>" not in page.body.decode()


async def test_an_address_that_is_wrong_or_too_old_is_not_there(region: RegionEnvironment) -> None:
    screen, server = Screen(region), await running(region)
    url = await opened(region, server)
    other = await opened(region, await running(region, name="other"))
    path, token = url.split("?token=")
    wrong = [
        path,
        f"{path}?token=",
        f"{path}?token={token[:-1]}",
        f"{path}?token={token}A",
        f"{urlsplit(other).path}?token={token}",
        url.replace(CLOUD, "sim-south"),
        url.replace(CLOUD, "nowhere"),
    ]
    for each in wrong:
        page = await screen.see(each)
        assert page.status == 404, each
        assert page.headers["cache-control"] == "no-store"
        assert "There is no console at this address." in page.body.decode()
        assert token not in page.body.decode()

    await region.clock.sleep(240)
    assert (await screen.see(url)).status == 200
    await region.clock.sleep(120)
    assert (await screen.see(url)).status == 404


@options(is_instant=True)
async def test_the_address_of_a_server_that_is_gone_is_not_there(region: RegionEnvironment) -> None:
    screen, server = Screen(region), await running(region)
    url = await opened(region, server)
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    await region.until_gone(f"/api/v2/servers/{server}")
    assert (await screen.see(url)).status == 404


@options(is_instant=True)
async def test_m27_a_console_ends_with_the_suspension_of_who_opened_it_and_does_not_come_back(
    region: RegionEnvironment,
) -> None:
    screen, store, server = Screen(region), region.app.ports.store, await running(region)
    url = await opened(region, server)
    assert "ann" not in url
    await region.clock.sleep(1)
    spec = UserSpec(subject=ANN, suspension=Suspension(since=region.clock.now()))
    ann = await store.create(User(metadata=Metadata(name=user_id(ANN)), spec=spec))
    assert (await screen.see(url)).status == 404
    assert (await screen.see(await opened(region, server))).status == 404
    resumed = replace(ann, spec=replace(ann.spec, suspension=None, resumed=region.clock.now()))
    await store.update(resumed)
    assert (await screen.see(url)).status == 404, "it does not come back"
    await region.clock.sleep(1)
    assert (await screen.see(await opened(region, server))).status == 200


async def test_m27_a_console_ends_with_the_deletion_of_the_service_account_that_opened_it(
    region: RegionEnvironment,
) -> None:
    store, now = region.app.ports.store, region.clock.now()
    name, gone = "ac0e7a3e-51a5-4f3e-8d57-0c1ad2f0a001", "ac0e7a3e-51a5-4f3e-8d57-0c1ad2f0a002"
    await store.create(ServiceAccount(metadata=Metadata(name=name), spec=ServiceAccountSpec()))
    assert not await was_suspended_since(store, name, now)
    assert await was_suspended_since(store, gone, now)
