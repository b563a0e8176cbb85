"""The metrics as Prometheus reads them."""

import asyncio
import gzip
import threading
from collections.abc import Callable

import httpx2
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from remuda.http.server.exposition import Exposition, Format, MetricsPage, negotiated
from remuda.http.server.health import PROCESS
from remuda.http.server.metrics import Metrics
from remuda.kernel.secrets import Secret
from tests.kit.clocks import HandClock
from tests.kit.http_server import Lines, observed

TEXT, OPENMETRICS = "text/plain", "application/openmetrics-text"
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
"""What Prometheus 3 sends."""
TOKEN = "f3a1c9d2b7e64580"


class Page:
    """The metrics of a process, over ASGI."""

    def __init__(self, token: str | None = None) -> None:
        self.registry, self.clock = CollectorRegistry(), HandClock()
        self.metrics = Metrics(self.registry, [PROCESS])
        self.metrics.of("process", "get_health").count(200)
        page = MetricsPage(Exposition(self.registry, self.clock).rendered, token=Secret(token) if token else None)
        app = observed(page, self.metrics, Lines())
        self.client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here")

    async def get(self, **headers: str) -> httpx2.Response:
        return await self.client.get("/metrics", headers={"accept-encoding": "identity", **headers})


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        (PROMETHEUS, OPENMETRICS),
        ("application/openmetrics-text", OPENMETRICS),
        ("Application/OpenMetrics-Text; version=1.0.0, */*;q=0.1", OPENMETRICS),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.5", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=nan, text/plain", TEXT),
        ("application/openmetrics-text;q=none", TEXT),
        (";,;q=,=;,", TEXT),
    ],
)
def test_openmetrics_is_for_those_who_prefer_it_by_name(accept: str, media_type: str) -> None:
    assert negotiated({b"accept": accept.encode()}).media_type == media_type


def test_gzip_is_for_those_who_accept_it() -> None:
    for accept in (b"gzip", b"br, GZIP;q=0.5", b"*"):
        assert negotiated({b"accept-encoding": accept}).is_compressed
    for accept in (b"", b"identity", b"*, gzip;q=0", b"deflate"):
        assert not negotiated({b"accept-encoding": accept}).is_compressed


async def test_the_text_format_is_what_its_parser_reads() -> None:
    page = Page()
    answer = await page.get()
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "content-encoding" not in answer.headers
    found = {each.name: each for each in text_families(answer.text)}
    assert {each.name for each in page.registry.collect()} == set(found)
    (served,) = [each for each in found["remuda_http_requests"].samples if each.labels["status"] == "2xx"]
    assert (served.labels["route"], served.value) == ("get_health", 1)


async def test_openmetrics_is_what_its_parser_reads_and_ends_with_eof() -> None:
    page = Page()
    answer = await page.get(accept=PROMETHEUS)
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.text.endswith("\n# EOF\n")
    families = openmetrics_families(answer.text)  # type: ignore[no-untyped-call]
    assert {each.name for each in families} == {each.name for each in page.registry.collect()}


async def test_a_compressed_answer_has_the_same_content() -> None:
    page = Page()
    plain, packed = await page.get(), await page.get(**{"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    names = [{each.name for each in text_families(answer.text)} for answer in (plain, packed)]
    assert names[0] == names[1]
    assert {answer.headers["vary"] for answer in (plain, packed)} == {"accept, accept-encoding"}


class Renderer:
    """Runs a rendering when it is told to."""

    def __init__(self) -> None:
        self.count = 0
        self.may_run = asyncio.Event()

    async def __call__(self, work: Callable[[], bytes]) -> bytes:
        self.count += 1
        await self.may_run.wait()
        return work()


async def test_m24_readers_at_once_get_one_rendering_of_their_format() -> None:
    renderer = Renderer()
    exposition = Exposition(CollectorRegistry(), HandClock(), run=renderer)
    formats = [Format(TEXT, is_compressed=False), Format(OPENMETRICS, is_compressed=True)]
    readers = [asyncio.create_task(exposition.rendered(each)) for each in formats * 20]
    await asyncio.sleep(0)
    readers[0].cancel()  # one who leaves takes nothing from the others
    renderer.may_run.set()
    read = await asyncio.gather(*readers, return_exceptions=True)
    assert renderer.count == 2
    assert isinstance(read[0], asyncio.CancelledError)
    assert set(read[2::2]) == {b""}
    assert {gzip.decompress(each) for each in read[1::2] if isinstance(each, bytes)} == {b"# EOF\n"}


async def test_m24_a_rendering_is_a_second_old_at_most_and_made_no_sooner() -> None:
    renderer, clock, registry = Renderer(), HandClock(), CollectorRegistry()
    renderer.may_run.set()
    counter = Counter("things", "Things.", registry=registry)
    exposition, plain = Exposition(registry, clock, run=renderer), Format(TEXT, is_compressed=False)
    first = await exposition.rendered(plain)
    counter.inc()
    clock.seconds += 0.99
    assert await exposition.rendered(plain) is first
    clock.seconds += 0.02
    assert b"things_total 1.0" in await exposition.rendered(plain)
    assert renderer.count == 2


class Watched:
    """A collector that notes its thread, and fails if it is told to."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.fails = False

    def collect(self) -> list[Metric]:
        if self.fails:
            raise RuntimeError("a defect")
        self.threads.append(threading.get_ident())
        return []


async def test_a_rendering_that_fails_is_an_error_and_the_next_one_is_tried() -> None:
    page, collector = Page(), Watched()
    page.registry.register(collector)
    collector.fails = True
    assert (await page.get()).status_code == 500
    collector.fails = False
    assert (await page.get()).status_code == 200


async def test_m24_the_metrics_are_not_rendered_on_the_event_loop() -> None:
    page, collector = Page(), Watched()
    page.registry.register(collector)
    collector.threads.clear()
    await page.get()
    assert collector.threads
    assert threading.get_ident() not in collector.threads


@pytest.mark.parametrize(
    "authorization", ["", TOKEN, f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}0", f"Bearer {TOKEN[:-1]}", "Bearer \xff"]
)
async def test_m24_without_the_token_there_are_no_metrics(authorization: str) -> None:
    page = Page(TOKEN)
    headers = [(b"authorization", authorization.encode("latin-1"))] if authorization else []
    for path in ("/metrics", "/", "/nowhere"):
        answer = await page.client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "remuda_http" not in answer.text


async def test_with_the_token_there_are_metrics() -> None:
    for scheme in ("Bearer", "bearer"):
        assert (await Page(TOKEN).get(authorization=f"{scheme} {TOKEN}")).status_code == 200


async def test_nothing_else_is_served_beside_the_metrics() -> None:
    client = Page().client
    for path in ("/", "/healthz", "/metrics/", "/identity/api/v1/organizations"):
        assert (await client.get(path)).status_code == 404
    wrong = await client.post("/metrics")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")
    head = await client.head("/metrics")
    assert (head.status_code, head.content) == (200, b"")
