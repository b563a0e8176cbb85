from pathlib import Path

from remuda.http.api import ApiSettings
from remuda.http.cors import EXPOSED_HEADERS, Cors
from tests.kit.sample_api.pipeline import HORSE, HORSES, running

ONE = f"{HORSES}/{HORSE}"
ANY = ApiSettings(cors=Cors(["*"]))
NAMED = ApiSettings(cors=Cors(["https://console.example.com", "https://other.example.com"], max_age_s=60))


async def test_every_answer_of_a_known_path_names_who_may_read_it(tmp_path: Path) -> None:
    async with running(tmp_path, settings=ANY) as api:
        for reply in (await api.client.get(ONE), await api.client.put(ONE), await api.client.having(None).get(ONE)):
            assert reply.headers["access-control-allow-origin"] == "*"
            assert "vary" not in reply.headers
        assert "access-control-allow-origin" not in (await api.client.get("/nonsense")).headers


async def test_a_page_is_told_what_it_may_read(tmp_path: Path) -> None:
    async with running(tmp_path, settings=ANY) as api:
        reply = await api.client.get(ONE, origin="https://anywhere.example.com")
        assert reply.headers["access-control-allow-origin"] == "*"
        assert reply.headers["access-control-expose-headers"] == ", ".join(EXPOSED_HEADERS)


async def test_no_page_of_another_origin_may_read_unless_one_is_named(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        reply = await api.client.get(ONE, origin="https://anywhere.example.com")
        assert not [name for name in reply.headers if name.startswith("access-control-")]


async def test_a_named_origin_is_echoed_and_another_is_told_the_first(tmp_path: Path) -> None:
    async with running(tmp_path, settings=NAMED) as api:
        for origin, told in (
            ("https://other.example.com", "https://other.example.com"),
            ("https://evil.example.com", "https://console.example.com"),
        ):
            reply = await api.client.get(ONE, origin=origin)
            assert (reply.headers["access-control-allow-origin"], reply.headers["vary"]) == (told, "Origin")
        assert (await api.client.get(ONE)).headers["vary"] == "Origin"


async def test_a_preflight_is_answered_for_every_route(tmp_path: Path) -> None:
    async with running(tmp_path, settings=NAMED) as api:
        reply = await api.client.having(None).send(
            "OPTIONS",
            ONE,
            headers={"origin": "https://console.example.com", "access-control-request-method": "DELETE"},
        )
        assert (reply.status, reply.body) == (204, b"")
        assert reply.headers["access-control-allow-methods"] == "DELETE, GET, HEAD, OPTIONS"
        assert reply.headers["access-control-allow-headers"] == (
            "Authorization, Content-Type, traceparent, tracestate, Idempotency-Key, If-Match, If-None-Match, "
            "Last-Event-ID"
        )
        assert reply.headers["access-control-max-age"] == "60"
        assert reply.headers["access-control-allow-origin"] == "https://console.example.com"
        assert api.service.calls == []


async def test_a_preflight_names_a_method_that_the_path_has(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        client = api.client
        assert (await client.send("OPTIONS", ONE)).status == 400
        assert (await client.send("OPTIONS", "/nonsense")).status == 404
        refused = await client.send("OPTIONS", ONE, headers={"access-control-request-method": "PUT"})
        assert (refused.status, refused.headers["allow"]) == (405, "DELETE, GET, HEAD, OPTIONS")
