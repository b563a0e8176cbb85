"""The console: what a browser is shown, logged in and not, and that no other site can look through it."""

import base64
import hashlib
import html
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, get_args

import msgspec
from prometheus_client import CollectorRegistry

from remuda.app.services import console_in_front
from remuda.compute.app import TABLE
from remuda.config.schema import ServerConfig
from remuda.datadir import DataDirectory
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.record_budget import RecordBudget
from remuda.http.server.access_log import AccessLog
from remuda.http.server.health import PAGES, PROCESS, Mounted, Mounts, ProcessPages
from remuda.http.server.metrics import Metrics
from remuda.http.server.server import ListenAddress
from remuda.http.sse import EventReader, Received
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login.browser_sessions import BrowserAuthenticator
from remuda.identity.login.redirect import ACCOUNT
from remuda.kernel.errors import Unauthenticated
from remuda.process import ProcessPorts
from remuda.resources.conventions import ORGANIZATION
from remuda.resources.schema import Provisioning
from remuda.store.objects import Metadata
from remuda.version import describe
from tests.kit.asgi.client import Client, Stream
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment, run_compute
from tests.kit.compute.requests import Tenant, at, made, settle
from tests.kit.environment import provided_by
from tests.kit.http_server import Lines
from tests.kit.identity.login import Browser
from tests.kit.simulation.store import SEALER

PASSWORD = "correct horse battery staple"
STREAM, SESSION, SCRIPT = "/console/instances", "/console/session", "/console/console.js"


class Front:
    """The console before the pages of a process, as one is built in production."""

    def __init__(self, compute: ComputeEnvironment, *, quota: int = 6_000) -> None:
        self.compute, self.problems = compute, list[tuple[str, str]]()
        ports, identity = compute.app.ports, compute.region.identity.app
        mounted = [Mounted("/compute", TABLE, compute.app.api)]
        setup = ProcessPorts(
            store=compute.store,
            clock=ports.clock,
            randomness=ports.randomness,
            sealer=SEALER,
            metrics=ports.metrics,
            record_budget=RecordBudget(ports.clock),
            closing=ports.closing,
            address=ListenAddress("127.0.0.1", 0),
            data=DataDirectory(Path()),
        )
        console = console_in_front(
            setup,
            ServerConfig(rate_limit=quota),
            identity=identity,
            compute=compute.app,
            mounted=mounted,
            account=f"/identity{ACCOUNT}",
        )
        metrics = Metrics(CollectorRegistry(), [PROCESS])
        limiter = RateLimiter(RateLimit(quota=quota), ports.clock)
        pages = ProcessPages(description=describe(), checks=[self.check], mounted=mounted, limiter=limiter)
        app = Mounts(mounted, console(pages), reserved=PAGES)
        observed = AccessLog(app, clock=ports.clock, randomness=ports.randomness, metrics=metrics, sink=Lines())
        self.client = Client(app=observed)

    def check(self) -> Iterable[tuple[str, str]]:
        return self.problems

    async def browser(self, subject: str) -> Browser:
        """Return a browser in which somebody has logged in."""
        identity = self.compute.region.identity
        await identity.local(subject, PASSWORD)
        browser = Browser(identity.client())
        page = await browser.get(ACCOUNT)
        reply = await browser.submit(page, email=subject, password=PASSWORD)
        assert reply.status == 302, reply.body
        return browser


def cookie_of(browser: Browser) -> str:
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


def in_a_console(scenario: Callable[[Front, Tenant], Coroutine[Any, Any, None]]) -> None:
    async def run(compute: ComputeEnvironment) -> None:
        await scenario(Front(compute), await settle(compute))

    run_compute(run)


front = provided_by(in_a_console)
tenant = provided_by(in_a_console, position=1)


async def received(stream: Stream) -> AsyncIterator[Received]:
    reader = EventReader()
    async for chunk in stream.chunks():
        for event in reader.feed(chunk):
            yield event


async def named(events: AsyncIterator[Received], kind: str) -> dict[str, Any]:
    """Return the next event of a kind."""
    async for event in events:
        if event.type == kind:
            found: dict[str, Any] = msgspec.json.decode(event.data)
            return found
    raise AssertionError(f"the stream ended without {kind}")


async def test_whoever_is_not_logged_in_is_told_what_this_is_and_where_to_log_in(front: Front) -> None:
    page = await front.client.get("/")
    text = page.body.decode()
    assert page.status == 200
    assert "<h1>Remuda is ready</h1>" in text
    assert f'<a class="button" href="/identity{ACCOUNT}">Log in</a>' in text
    assert 'href="/compute/docs"' in text
    assert "<script" not in text
    front.problems.append(("store", "It is damaged."))
    assert "<h1>Remuda is not ready</h1>" in (text := (await front.client.get("/")).body.decode())
    assert "<strong>store</strong>It is damaged." in text


async def test_a_page_may_load_its_own_script_and_styles_and_nothing_else(front: Front) -> None:
    browser = await front.browser("ann@example.com")
    page = await front.client.get("/", cookie=cookie_of(browser))
    text, policy = page.body.decode(), page.headers["content-security-policy"]
    assert "<h1>Your instances</h1>" in text
    assert "ann@example.com" in text
    assert f'<script src="{SCRIPT}" defer></script>' in text
    assert page.headers["cache-control"] == "no-store"
    allowed = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (allowed["default-src"], allowed["script-src"], allowed["connect-src"]) == ("'none'", "'self'", "'self'")
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in styles]
    assert allowed["style-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert 'style="' not in text


async def test_the_script_is_ours_and_sets_text_only(front: Front) -> None:
    reply = await front.client.get(SCRIPT)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", reply.body.decode())
    head = await front.client.send("HEAD", SCRIPT)
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(reply.body)))


async def test_the_script_has_no_word_for_a_state_that_the_api_has_not(front: Front) -> None:
    script = (await front.client.get(SCRIPT)).body.decode()
    shown = re.search(r"const stateOf = \(metadata\) =>\n(.*?);\n", script, re.DOTALL)
    assert shown is not None
    assert set(re.findall(r'"(\w+)"', shown[1])) == {"provisioned", "error"}
    assert {"provisioned", "error"} <= {*get_args(Provisioning)}


async def test_a_browser_follows_the_instances_that_its_user_may_see(front: Front, tenant: Tenant) -> None:
    other = await settle(front.compute, "bob")
    mine = made(await tenant.client.post(INSTANCES, tenant.wanted(front.compute, "mine")))
    made(await other.client.post(INSTANCES, other.wanted(front.compute, "theirs")))
    browser = await front.browser("ann@example.com")
    async with front.client.stream(STREAM, cookie=cookie_of(browser), sec_fetch_site="same-origin") as stream:
        head = await stream.head()
        assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
        assert "access-control-allow-origin" not in head.headers
        events = received(stream)
        assert (await named(events, "added"))["metadata"]["id"] == mine
        assert await named(events, "bookmark") == {"synced": True}
        later = made(await front.compute.root.post(INSTANCES, tenant.wanted(front.compute, "later")))
        assert (await named(events, "added"))["metadata"]["id"] == later
        await front.compute.until(mine, "provisioned")
        await front.compute.root.delete(at(mine))
        assert (await named(events, "deleted"))["metadata"]["name"] == "mine"


async def test_a_stream_ends_when_its_user_logs_out(front: Front) -> None:
    browser = await front.browser("ann@example.com")
    cookie = cookie_of(browser)
    assert (await front.client.get(SESSION, cookie=cookie)).json == {"subject": "ann@example.com"}
    async with front.client.stream(STREAM, cookie=cookie) as stream:
        events = received(stream)
        await named(events, "bookmark")
        page = await browser.get("/oauth2/v2/logout")
        assert (await browser.submit(page)).status == 200
        assert await named(events, "end") == {"reason": "unauthenticated"}
    assert (await front.client.get(SESSION, cookie=cookie)).status == 401
    assert (await front.client.get(STREAM, cookie=cookie)).status == 401


async def test_without_a_login_of_this_browser_nothing_is_shown(front: Front) -> None:
    for cookie in ("", "__Host-remuda-browser=", f"__Host-remuda-browser={'A' * 43}", "other=1"):
        for path in (STREAM, SESSION):
            assert (await front.client.get(path, cookie=cookie)).status == 401
        assert "Log in" in (await front.client.get("/", cookie=cookie)).body.decode()


async def test_what_another_site_begins_is_refused_whoever_is_logged_in(front: Front) -> None:
    cookie = cookie_of(await front.browser("ann@example.com"))
    for region_storage in ("cross-site", "same-site", "nonsense"):
        for path in (STREAM, SESSION):
            assert (await front.client.get(path, cookie=cookie, sec_fetch_site=region_storage)).status == 403
    for path in ("/", STREAM, SESSION, SCRIPT):
        reply = await front.client.post(path, {}, cookie=cookie)
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


async def test_everything_else_is_left_to_the_process_and_its_services(front: Front) -> None:
    assert (await front.client.get("/healthz")).json == {"status": "ok"}
    assert (await front.client.get("/docs")).status == 200
    assert (await front.client.get("/console/nothing")).status == 404
    assert (await front.client.get(f"/compute{INSTANCES}")).status == 401


async def test_a_name_that_looks_like_markup_is_text(front: Front) -> None:
    odd = "o'hara&co@example.com"
    browser = await front.browser(odd)
    text = (await front.client.get("/", cookie=cookie_of(browser))).body.decode()
    assert html.escape(odd, quote=True).replace("&#x27;", "&#39;") in text
    assert odd not in text


async def test_one_organizations_word_for_somebody_counts_in_that_organization_alone(front: Front) -> None:
    identity = front.compute.region.identity
    farm, elsewhere = front.compute.region.organization, await identity.organization("elsewhere")
    await identity.member("ann@example.com", elsewhere, "administrator")
    spec = OAuth2ProviderSpec(type="custom", issuer="https://idp.test", client_id="us")
    metadata = Metadata(name="idp", labels={ORGANIZATION: elsewhere})
    provider = await front.compute.store.create(OAuth2Provider(metadata=metadata, spec=spec))
    services = identity.app.services
    logins = services.login.logins
    viewers = BrowserAuthenticator(
        store=front.compute.store, cookie=services.login.cookie, logins=logins, permissions=services.permissions
    )
    user = await front.compute.store.get(User, user_id("ann@example.com"))
    cookie = "C" * 43
    await logins.begin(user, cookie=cookie, provider="idp", previous=None)
    known = await viewers.find(f"__Host-remuda-browser={cookie}")
    assert (known.actor_name, known.member_of_only) == ("ann@example.com", elsewhere)
    assert set(known.access.organizations) == {elsewhere}
    everywhere = await front.browser("ann@example.com")
    assert set((await viewers.find(cookie_of(everywhere))).access.organizations) == {farm, elsewhere}
    await front.compute.store.delete(OAuth2Provider, provider.name, uid=provider.uid)
    try:
        await viewers.find(f"__Host-remuda-browser={cookie}")
    except Unauthenticated:
        return
    raise AssertionError("with its provider went what that had vouched for")


async def test_m27_pages_and_scripts_take_the_rate_limit_of_the_address(front: Front) -> None:
    limited = Front(front.compute, quota=3)
    assert [(await limited.client.get(path)).status for path in ("/", SCRIPT, SESSION)] == [200, 200, 401]
    for path in (SCRIPT, SESSION):
        reply = await limited.client.get(path)
        assert (reply.status, reply.json["code"]) == (429, "too_many")


async def test_m24_a_browser_that_has_the_script_gets_304(front: Front) -> None:
    etag = (await front.client.get(SCRIPT)).headers["etag"]
    reply = await front.client.get(SCRIPT, **{"if-none-match": etag})
    assert (reply.status, reply.body) == (304, b"")
