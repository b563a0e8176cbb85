"""The screens of simulated servers, as a browser sees them in the process that runs the cloud."""

import base64
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from remuda.app.console_sessions import ConsoleSessions
from remuda.app.providers import CONSOLES, CONSOLES_PREFIX, Screens, screens_api
from remuda.http.server.health import Mounted, Mounts
from remuda.identity.kinds.users import Grant, Group, Role, RoleScopes, RoleSpec, Suspension, User, user_id
from remuda.identity.rbac.actors import Actors
from remuda.identity.rbac.roles import role_id
from remuda.resources.conventions import NAME
from remuda.resources.crud import find
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
        actors = Actors(store=region.store, permissions=region.identity.app.services.permissions)
        sessions = ConsoleSessions(store=region.store, actors=actors)
        screens = Screens(consoles={CLOUD: region.north.consoles}, is_permitted=sessions.is_permitted)
        app = screens_api(region.app, screens, url="https://cloud.example.com")
        validated = Validated(app, contract_of(CONSOLES))
        self._client = Client(app=Mounts([Mounted(CONSOLES_PREFIX, CONSOLES, validated)], validated))

    async def see(self, url: str) -> Reply:
        """Open an address, wherever that is said to be."""
        found = urlsplit(url)
        path = f"{CONSOLES_PREFIX}/consoles{found.path}"
        return await self._client.get(path, parse_qsl(found.query))


async def opened(region: RegionEnvironment, server: str) -> str:
    """Return the address of a server's console, opened for somebody with a role of the operator's own."""
    if await find(region.store, User, user_id(ANN)) is None:
        scopes = RoleScopes(organization=(Grant("region:servers", ("read", "update")),))
        role = Metadata(name=role_id("operator"), labels={NAME: "operator"})
        await region.store.create(Role(metadata=role, spec=RoleSpec(scopes=scopes)))
        await region.identity.member(ANN, region.organization, "operator")
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
    ann = await store.get(User, user_id(ANN))
    ann = await store.update(replace(ann, spec=replace(ann.spec, suspension=Suspension(since=region.clock.now()))))
    assert (await screen.see(url)).status == 404
    assert (await screen.see(await opened(region, server))).status == 404
    resumed = replace(ann, spec=replace(ann.spec, suspension=None, resumed=region.clock.now()))
    await store.update(resumed)
    assert (await screen.see(url)).status == 404, "it does not come back"
    await region.clock.sleep(1)
    assert (await screen.see(await opened(region, server))).status == 200


@options(is_instant=True)
async def test_m27_a_console_of_a_server_ends_with_the_role_that_it_was_opened_with(region: RegionEnvironment) -> None:
    screen, server = Screen(region), await running(region)
    url = await opened(region, server)
    assert (await screen.see(url)).status == 200
    (group,) = (await region.store.list(Group)).items
    await region.store.update(replace(group, spec=replace(group.spec, role_ids=(role_id("reader"),))))
    assert (await screen.see(url)).status == 404
