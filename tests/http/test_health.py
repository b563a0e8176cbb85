import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import httpx2
import msgspec
import pytest
from prometheus_client import CollectorRegistry

from remuda.http.asgi import Receive, Scope, Send
from remuda.http.cors import Cors
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.responses import Response
from remuda.http.routes import Table
from remuda.http.server.health import (
    PAGES,
    PROCESS,
    Health,
    Mounted,
    Mounts,
    ProcessPages,
    ProcessVersion,
    Readiness,
    store_check,
)
from remuda.http.server.metrics import Metrics
from remuda.version import ServiceDescriptor
from tests.kit.asgi.process_client import process_contract
from tests.kit.asgi.validating import Validated
from tests.kit.clocks import HandClock
from tests.kit.http_server import Lines, observed
from tests.kit.sample_api.pipeline import table as sample_table

ABOUT = ServiceDescriptor("remuda", "1.2.3", "abcdef")


class Process:
    """The pages of a process, with what speaks against it in our hands."""

    def __init__(self, *mounted: Mounted, quota: int = 6_000) -> None:
        self.problems: list[tuple[str, str]] = []
        self.lines = Lines()
        metrics = Metrics(CollectorRegistry(), [PROCESS])
        pages = ProcessPages(
            description=ABOUT,
            checks=[self.check],
            mounted=mounted,
            limiter=RateLimiter(RateLimit(quota=quota), HandClock()),
            cors=Cors(["*"]),
        )
        validated = Validated(pages, process_contract())
        app = observed(Mounts(mounted, validated, reserved=PAGES), metrics, self.lines)
        self.client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here")

    def check(self) -> Iterable[tuple[str, str]]:
        return self.problems


def tiny_table(service: str) -> Table:
    return Table(service, title=service.title(), description=f"The <{service}> API.", routes=[])


async def who(scope: Scope, _receive: Receive, send: Send) -> None:
    told = {"root_path": scope.get("root_path", ""), "path": scope["path"]}
    await Response(200, json.dumps(told).encode()).send(send)


async def test_a_process_that_answers_lives() -> None:
    answer = await Process().client.get("/healthz")
    assert answer.status_code == HTTPStatus.OK
    assert msgspec.json.decode(answer.content, type=Health) == Health()


async def test_a_process_is_ready_when_nothing_speaks_against_it() -> None:
    process = Process()
    process.problems = [("store", "It is damaged.")]
    answer = await process.client.get("/readyz")
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    told = answer.json()
    assert (told["error"], told["code"]) == ("unavailable", "not_ready")
    assert told["problems"] == [{"pointer": "store", "reason": "It is damaged."}]
    process.problems = []
    answer = await process.client.get("/readyz")
    assert answer.status_code == HTTPStatus.OK
    assert msgspec.json.decode(answer.content, type=Readiness) == Readiness()


async def test_the_version_names_release_and_source() -> None:
    answer = await Process().client.get("/api/version")
    assert msgspec.json.decode(answer.content, type=ProcessVersion) == ProcessVersion(
        name="remuda", version="1.2.3", revision="abcdef"
    )


async def test_m24_the_metrics_are_not_among_the_public_pages() -> None:
    client = Process().client
    assert (await client.get("/metrics")).status_code == HTTPStatus.NOT_FOUND
    assert "metrics" not in (await client.get("/")).text


async def test_the_front_page_says_what_runs_here_and_where_to_look() -> None:
    process = Process(Mounted("/compute", tiny_table("compute"), who, {"/login": "Log <in>"}))
    answer = await process.client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "remuda 1.2.3 (revision abcdef)" in answer.text
    for link in ("/healthz", "/readyz", "/api/version", "/docs", "/compute/docs"):
        assert f'href="{link}"' in answer.text
    assert '<a href="/compute/login">Log &lt;in&gt;</a>' in answer.text
    assert "The &lt;compute&gt; API." in answer.text
    assert "No service runs in this process" in (await Process().client.get("/")).text


async def test_the_front_page_says_whether_the_process_is_ready_and_what_speaks_against_it() -> None:
    process = Process()
    assert "<h1>Remuda is ready</h1>" in (await process.client.get("/")).text
    process.problems = [("store", "It is <damaged>.")]
    shown = (await process.client.get("/")).text
    assert "<h1>Remuda is not ready</h1>" in shown
    assert "<strong>store</strong>It is &lt;damaged&gt;." in shown


async def test_an_unknown_page_is_404_and_a_wrong_method_405_in_the_error_envelope() -> None:
    client = Process().client
    absent = await client.get("/nowhere")
    assert (absent.status_code, absent.json()["error"]) == (404, "not_found")
    assert absent.json()["trace_id"] == absent.headers["x-trace-id"]
    wrong = await client.post("/healthz")
    assert (wrong.status_code, wrong.json()["error"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "GET, HEAD, OPTIONS"
    assert (await client.post("/")).headers["allow"] == "GET, HEAD"


async def test_pages_of_other_origins_may_read_what_is_documented() -> None:
    client = Process().client
    asked = {"origin": "https://page.example.com", "access-control-request-method": "GET"}
    for path in ("/healthz", "/readyz", "/api/version", "/openapi.json", "/docs"):
        assert (await client.get(path)).headers["access-control-allow-origin"] == "*"
        preflight = await client.options(path, headers=asked)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (HTTPStatus.NO_CONTENT, "*")
        assert preflight.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
    for path in ("/", "/nowhere"):
        assert "access-control-allow-origin" not in (await client.get(path)).headers


async def test_a_store_speaks_against_being_ready_when_it_is_damaged_or_its_tasks_fail() -> None:
    state: dict[str, Any] = {"integrity": "checking", "failing": {}}
    check = store_check(lambda: state["integrity"], lambda: state["failing"])
    assert list(check()) == []
    state["failing"] = {"upkeep": "boom in /secret/place"}
    ((part, why),) = check()
    assert part == "store"
    assert "upkeep" in why
    assert "secret" not in why
    state.update(integrity="damaged", failing={})
    ((part, why),) = check()
    assert "damaged" in why


async def test_the_longest_prefix_takes_the_request_and_the_path_stays_whole() -> None:
    mounts = [Mounted(prefix, tiny_table(f"at{number}"), who) for number, prefix in enumerate(["/a", "/a/b"])]
    client = Process(*mounts).client
    for path, root in {"/a": "/a", "/a/x": "/a", "/a/bc": "/a", "/a/b": "/a/b", "/a/b/c": "/a/b"}.items():
        assert (await client.get(path)).json() == {"root_path": root, "path": path}
    assert (await client.get("/ab")).status_code == 404


async def test_an_api_at_the_root_takes_everything_but_what_the_process_says_about_itself() -> None:
    client = Process(Mounted("", tiny_table("all"), who)).client
    assert (await client.get("/things")).json() == {"root_path": "", "path": "/things"}
    assert (await client.get("/healthz")).json() == {"status": "ok"}


def test_mounts_that_contradict_each_other_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="two APIs"):
        Mounts([Mounted("/a", tiny_table("one"), who), Mounted("/a", tiny_table("two"), who)], who)
    for prefix in ("a", "/a/", "/"):
        with pytest.raises(ValueError, match="a prefix must begin"):
            Mounts([Mounted(prefix, tiny_table("one"), who)], who)


async def test_the_process_documents_its_own_routes() -> None:
    process = Process()
    page = await process.client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    document = (await process.client.get("/openapi.json")).json()
    for path in ("/healthz", "/readyz", "/api/version"):
        assert path in page.text
        assert path in document["paths"]
    assert (await process.client.post("/docs")).status_code == 405


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_browser_that_is_lost_gets_a_page_with_links_and_a_program_gets_json(method: str) -> None:
    process = Process(Mounted("/sample", tiny_table("sample"), who, {"/account": "Your account"}))
    accepted = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    page = await process.client.request(method, "/nope", headers=accepted)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<h1>This page does not exist</h1>" in page.text
    for link in ("/", "/sample/docs", "/sample/account"):
        assert f'<a href="{link}">' in page.text
    assert page.headers["x-trace-id"] in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for asked in ({"Accept": "application/json"}, {"Accept": "*/*"}, {}):
        told = await process.client.request(method, "/nope", headers=asked)
        assert (told.status_code, told.headers["content-type"]) == (404, "application/json")
        assert told.json()["code"] == "not_found"
    assert [line["error"] for line in map(json.loads, process.lines.lines)] == ["not_found"] * 4


async def test_the_document_of_a_process_is_that_of_all_its_apis() -> None:
    process = Process(Mounted("/sample", sample_table(), who))
    told = (await process.client.get("/openapi.json")).json()
    assert {
        "/healthz",
        "/readyz",
        "/api/version",
        *(f"/sample{route.path}" for route in sample_table().routes),
    } == told["paths"].keys()
    assert told["info"]["title"] == "Remuda"
    names = {operation["operationId"] for item in told["paths"].values() for operation in item.values()}
    assert {"process_get_health", "sample_create"} <= names
    assert {"HorseWrite", "Readiness"} <= told["components"]["schemas"].keys()


async def test_m27_a_long_path_does_not_fill_the_log() -> None:
    process = Process()
    assert (await process.client.get("/" + "x" * 20_000)).status_code == 404
    (line,) = map(json.loads, process.lines.lines)
    assert line["path"] == "/" + "x" * 1023 + "…"


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/nowhere"])
async def test_m27_pages_and_documents_take_the_rate_limit_of_the_address(path: str) -> None:
    process = Process(quota=2)
    for left in (1, 0):
        answer = await process.client.get(path)
        assert answer.status_code in {200, 404}
        assert answer.headers["ratelimit"].startswith(f'"default";r={left};')
    answer = await process.client.get(path)
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (429, "too_many", "30")
    for probe in ("/healthz", "/readyz", "/api/version"):
        assert (await process.client.get(probe)).status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
async def test_m24_who_has_a_document_gets_304_and_who_accepts_it_gets_it_compressed(path: str) -> None:
    client = Process().client
    plain = await client.get(path, headers={"accept-encoding": "identity"})
    compressed = await client.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert int(compressed.headers["content-length"]) < len(plain.content) / 2
    assert compressed.content == plain.content
    assert plain.headers["etag"] != compressed.headers["etag"]
    assert plain.headers["vary"] == compressed.headers["vary"] == "accept-encoding"
    for answer, coding in ((plain, "identity"), (compressed, "gzip")):
        known = {"accept-encoding": coding, "if-none-match": answer.headers["etag"]}
        again = await client.get(path, headers=known)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", answer.headers["etag"])
        assert "content-encoding" not in again.headers
    assert (await client.get(path, headers={"if-none-match": '"another"'})).status_code == 200
