"""The screens of simulated servers, as a browser sees them in the process that runs the cloud."""

import base64
from urllib.parse import parse_qsl, urlsplit

from remuda.app.providers import CONSOLES, CONSOLES_PREFIX, screens_api
from remuda.http.server.health import Mounted, Mounts
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply, contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.environment import options
from tests.kit.identity.environment import expect
from tests.kit.region.environment import RegionEnvironment

CLOUD = "sim-north"
MARKUP = base64.b64encode(b'#cloud-config\nhostname: "<b>web</b>"\n').decode()


class Screen:
    """Somebody with a browser."""

    def __init__(self, region: RegionEnvironment) -> None:
        app = screens_api(region.app, {CLOUD: region.north.consoles}, url="https://cloud.example.com")
        validated = Validated(app, contract_of(CONSOLES))
        self._client = Client(app=Mounts([Mounted(CONSOLES_PREFIX, CONSOLES, validated)], validated))

    async def see(self, url: str) -> Reply:
        """Open an address, wherever that is said to be."""
        found = urlsplit(url)
        path = f"{CONSOLES_PREFIX}/consoles{found.path}"
        return await self._client.get(path, parse_qsl(found.query))


async def opened(region: RegionEnvironment, server: str) -> str:
    """Return the address of a server's console."""
    client = region.service("unikorn-compute", actor="ann@example.com")
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
