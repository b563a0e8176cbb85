"""The screens of simulated servers, for a browser: what a server wrote to its console, and what it goes on to write.

A real cloud serves them itself, and so does a simulated one, but it has no address of its own: the process that runs it
shows them. Whoever has the address may look, for as long as its token is good: that cannot be guessed, and an address
that is wrong or too old is not there. There is nothing to be typed.
"""

from collections.abc import Mapping
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from remuda.http.api import Api
from remuda.http.responses import Page
from remuda.http.routes import Call, Nothing, Parameters, Route, Table
from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import id_in
from remuda.providers.simulated.console import SimConsoles
from remuda.region.app import RegionApp
from remuda.service import api_ports

CONSOLES_PREFIX = "/simulated"
"""Where they are mounted."""
CONSOLES_URL = f"{CONSOLES_PREFIX}/consoles"
"""Where all of them are; a cloud adds which one."""

_LINES = 2_000
_AGAIN_S = 2

Screens = Mapping[str, SimConsoles]
"""The consoles of simulated clouds, by the names of the clouds."""


class ScreenPath(Parameters, frozen=True):
    """Whose screen it is."""

    cloud: str
    server: str


class ScreenQuery(Parameters, frozen=True):
    """What lets one look."""

    token: str = ""


async def _show(screens: Screens, call: Call[ScreenPath, ScreenQuery, Nothing]) -> Page:
    consoles = screens.get(call.path.cloud)
    if consoles is None:
        return _closed()
    try:
        handle = consoles.seen_with(call.query.token, server=call.path.server)
        written = await consoles.console_output(handle, lines=_LINES)
    except NotFound:
        return _closed()
    return Page(_render("console.html", server=id_in(handle.name), written=written, again_s=_AGAIN_S))


def _closed() -> Page:
    return Page(_render("console_closed.html"), status=404)


def _render(name: str, **told: object) -> str:
    return _environment().get_template(name).render(title="Console", **told)


@cache
def _environment() -> Environment:
    loaders = ChoiceLoader([PackageLoader("remuda.app"), PackageLoader("remuda.http")])
    return Environment(loader=loaders, autoescape=True, undefined=StrictUndefined)


CONSOLES = Table(
    "simulated",
    title="Simulated clouds",
    description="What the simulated clouds show by themselves.",
    routes=[
        Route(
            method="GET",
            path="/consoles/{cloud}/{server}",
            name="show_console",
            summary="See the screen of a simulated server",
            scope="public",
            path_type=ScreenPath,
            query_type=ScreenQuery,
            answer_type=Page,
            page=True,
            handler=_show,
        )
    ],
)
"""What is mounted with `Screens`."""


def screens_api(region: RegionApp, screens: Screens, *, url: str) -> Api:
    """Return what shows them, beside the region that they are of, in a process that clients reach at `url`."""
    ports = region.ports
    return Api(CONSOLES, screens, api_ports(ports, ports.authenticator, region.watches, url=url + CONSOLES_PREFIX))
