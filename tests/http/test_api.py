import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.http.api import ApiSettings
from remuda.http.asgi import ClientDisconnect
from remuda.http.request import Observation
from remuda.kernel.errors import NotFound
from tests.kit.sample_api.pipeline import HORSE, HORSES, ORGANIZATION, running
from tests.kit.sample_kinds import horse

ONE = f"{HORSES}/{HORSE}"
REFERENCE = "/api/v1/references/somebody"
GOOD = {"metadata": {"name": "bella"}, "spec": {"age": 7}}


async def test_an_answer_is_json_that_nobody_caches(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        reply = await api.client.get(ONE)
        assert reply.json == {"id": HORSE, "name": "bella", "age": 7}
        assert (
            reply.headers.items()
            >= {
                "content-type": "application/json",
                "cache-control": "no-cache",
                "content-length": str(len(reply.body)),
            }.items()
        )
        assert reply.headers["ratelimit-policy"] == '"default";q=1000;w=60'


async def test_m27_unknown_paths_are_limited_as_other_requests_are(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        reply = await api.client.get("/api/v1/nowhere")
        assert (reply.status, reply.headers["ratelimit-policy"]) == (404, '"default";q=1000;w=60')


async def test_a_browser_gets_a_page_with_links_for_an_unknown_path_and_a_program_json(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        page = await api.client.get("/api/v1/nowhere", accept="text/html,application/xhtml+xml,*/*;q=0.8")
        assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "ratelimit-policy" in page.headers
        text = page.body.decode()
        assert "<h1>This page does not exist</h1>" in text
        assert '<a href="/">Home</a>' in text
        assert '<a href="/docs">' in text
        for accepted in ("application/json", "*/*"):
            told = await api.client.get("/api/v1/nowhere", accept=accepted)
            assert (told.status, told.json["code"]) == (404, "not_found")


async def test_a_rendered_answer_brings_its_headers(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        reply = await api.client.get(f"{HORSES}/fastest")
        assert (reply.headers["etag"], reply.headers["vary"]) == ('"1"', "Accept")


async def test_an_answer_without_content_has_no_body(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        reply = await api.client.delete(ONE)
        assert (reply.status, reply.body, reply.headers["content-length"]) == (202, b"", "0")
        assert "content-type" not in reply.headers


async def test_the_handler_is_given_the_whole_call(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        await api.client.post(HORSES, GOOD, if_match='"7"')
        await api.client.get(ONE)
        made, read = api.service.calls
        assert (made.path.organization, made.body.metadata.name, made.context.if_match) == (
            ORGANIZATION,
            "bella",
            '"7"',
        )
        assert made.principal.subject == "anna@example.com"
        assert len(made.context.trace_id) == 32
        assert (read.path.horse, read.context.if_match) == (HORSE, None)


@pytest.mark.parametrize("value", ["", " ", "x" * 256, "\xe9"])
async def test_a_header_that_breaks_its_rule_is_told(tmp_path: Path, value: str) -> None:
    async with running(tmp_path) as api:
        refused = await api.client.delete(ONE, if_match=value)
        assert (refused.status, refused.json["problems"][0]["pointer"]) == (400, "If-Match")
        assert api.service.calls == []
        refused = await api.client.get("/api/v1/all", last_event_id=value)
        assert (refused.status, refused.json["problems"][0]["pointer"]) == (400, "Last-Event-ID")


@pytest.mark.parametrize(("method", "path"), [("PUT", REFERENCE), ("GET", ONE), ("GET", HORSES)])
async def test_a_precondition_that_nobody_would_look_at_is_refused(tmp_path: Path, method: str, path: str) -> None:
    async with running(tmp_path) as api:
        refused = await api.client.send(method, path, headers={"If-Match": '"7"'})
        assert (refused.status, api.service.calls) == (400, [])
        assert refused.json["problems"] == [{"pointer": "If-Match", "reason": "is not supported here"}]
        assert (await api.client.send(method, path)).status < 300


async def test_head_is_answered_like_get_without_the_body(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        whole = await api.client.get(ONE)
        head = await type(api.client)(app=api.api, token="good").send("HEAD", ONE)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]
        await api.store.create(horse("bella"))
        listed = await type(api.client)(app=api.api, token="good").send("HEAD", "/api/v1/all", query={"watch": "true"})
        assert (listed.status, listed.body, listed.headers["content-type"]) == (200, b"", "text/event-stream")


async def test_a_public_route_asks_for_no_credentials(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        assert (await api.client.having(None).get("/public")).status == 200
        assert api.tokens.seen == []
        assert api.service.calls[0].principal.subject == ""


async def test_a_collection_is_listed_and_paged(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        for name in ("anna", "bella", "cora"):
            await api.store.create(horse(name))
        everything = await api.client.get("/api/v1/all")
        assert [each["id"] for each in everything.json] == ["anna", "bella", "cora"]
        assert everything.headers["cache-control"] == "no-cache"
        first = await api.client.get("/api/v1/all", {"limit": "2"})
        assert [each["id"] for each in first.json] == ["anna", "bella"]
        assert first.headers["link"].startswith("</api/v1/all?limit=2&continue=")
        rest = await api.client.get("/api/v1/all", {"limit": "2", "continue": first.headers["x-continue"]})
        assert [each["id"] for each in rest.json] == ["cora"]


async def test_a_watch_streams_until_the_client_leaves(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        await api.store.create(horse("anna"))
        async with api.client.stream("/api/v1/all", {"watch": "true"}) as stream:
            assert (await stream.head()).headers["content-type"] == "text/event-stream"
            seen = b""
            async for chunk in stream.chunks():
                seen += chunk
                if b"synced" in seen:
                    break
            await api.store.create(horse("bella"))
            async for chunk in stream.chunks():
                seen += chunk
                if b'"id":"bella"' in seen:
                    break
        assert seen.count(b"event: added") == 2
        assert [task.get_name() for task in asyncio.all_tasks() if "stream" in task.get_name()] == []


async def test_a_watch_ends_with_its_credentials(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        async with api.client.stream("/api/v1/all", {"watch": "true"}) as stream:
            chunks = stream.chunks()
            await anext(chunks)
            api.tokens.known.clear()
            api.clock.ahead_s = 60
            await api.store.create(horse("bella"))
            assert b'"reason":"unauthenticated"' in await anext(chunks)
        assert len(api.tokens.seen) == 2


async def test_a_secret_is_sent_by_the_routes_that_say_so_and_by_no_other(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        assert (await api.client.post("/api/v1/brand")).json == {"brand": "sesame"}
        refused = await api.client.post("/api/v1/leak")
        assert refused.status == 500
        assert b"sesame" not in refused.body


async def test_a_request_with_a_key_is_carried_out_once(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        first, second = [await api.client.post(HORSES, GOOD, idempotency_key="k1") for _ in range(2)]
        assert (first.status, second.status, len(api.service.calls)) == (201, 201, 1)
        assert first.body == second.body
        assert second.headers["idempotency-replayed"] == "true"
        other = await api.client.post(HORSES, {**GOOD, "x": 1}, idempotency_key="k1")
        assert (other.status, other.json["code"]) == (422, "key_reused")
        conditional = await api.client.post(HORSES, GOOD, idempotency_key="k1", if_match='"1"')
        assert conditional.json["code"] == "key_reused"
        assert (await api.client.post("/api/v1/brand", idempotency_key="k2")).status == 200
        assert (await api.client.post("/api/v1/brand", idempotency_key="k2")).status == 409


async def test_a_key_of_somebody_else_with_the_same_name_is_another_key(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        anna = api.tokens.known["good"]
        namesakes = [
            anna,
            replace(anna, issuer="https://login.example.com"),
            replace(anna, member_of_only=ORGANIZATION),
            replace(anna, service="compute"),
            replace(anna, service="compute", issuer="https://login.example.com"),
            replace(anna, service="compute", member_of_only=ORGANIZATION),
            replace(anna, service="compute", subject="compute", actor=anna.subject),
            replace(anna, service="region", subject="region", actor=anna.subject),
            replace(anna, subject=f"compute for {anna.subject}"),
        ]
        for api.tokens.known["namesake"] in namesakes:
            reply = await api.client.having("namesake").post(HORSES, GOOD, idempotency_key="k1")
            assert (reply.status, reply.headers.get("idempotency-replayed")) == (201, None)
        assert len({call.context.operation for call in api.service.calls}) == len(namesakes)


async def test_each_write_has_an_operation_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        for _ in range(2):
            await api.client.post(HORSES, GOOD)
        assert len({call.context.operation for call in api.service.calls}) == 2


async def test_a_handler_past_the_time_limit_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path, settings=ApiSettings(time_limit_s=0.01)) as api:
        api.service.is_stuck = True
        reply = await api.client.get(ONE)
        assert (reply.status, reply.json["code"]) == (503, "timed_out")


async def test_a_timeout_of_the_handlers_own_is_a_defect(tmp_path: Path) -> None:
    def time_out() -> None:
        raise TimeoutError

    async with running(tmp_path) as api:
        api.service.act = time_out
        assert (await api.client.get(ONE)).json["code"] == "internal"


async def test_a_body_past_the_limit_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, settings=ApiSettings(body_limit=100)) as api:
        reply = await api.client.post(HORSES, {**GOOD, "x": "y" * 100})
        assert (reply.status, reply.json["error"]) == (413, "request_entity_too_large")


async def test_a_client_that_leaves_in_the_middle_is_not_answered(tmp_path: Path) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pytest.fail(f"nobody is there for {message}")

    async with running(tmp_path) as api:
        scope = {**api.client._scope("POST", HORSES, (), GOOD, {})}
        with pytest.raises(ClientDisconnect):
            await api.api(scope, receive, send)


async def test_what_was_found_out_is_there_for_the_layers_around(tmp_path: Path) -> None:
    async def send(_message: Any) -> None:
        """Drop it."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    def fail() -> None:
        raise NotFound("Horse", "bella")

    async with running(tmp_path) as api:
        api.service.act = fail
        seen = Observation("f" * 32, 0.0, None)
        await api.api({**api.client._scope("GET", ONE, (), None, {}), "remuda": seen}, receive, send)
        assert (seen.service, seen.route, seen.principal, seen.error_code) == (
            "sample",
            "get",
            "anna@example.com",
            "not_found",
        )
        assert api.service.calls[0].context.trace_id == "f" * 32


async def test_a_stranger_has_no_idempotency_keys(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        stranger = api.client.having(None)
        refused = await stranger.post("/notices", idempotency_key="k")
        assert (refused.status, refused.json["problems"][0]["pointer"]) == (400, "Idempotency-Key")
        assert api.service.calls == []
        assert (await stranger.post("/notices")).status == 202


async def test_a_watch_begins_where_a_list_ended(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        await api.store.create(horse("anna"))
        listed = await api.client.get("/api/v1/all")
        await api.store.create(horse("bella"))
        version = listed.headers["x-resource-version"]
        async with api.client.stream("/api/v1/all", {"watch": "true"}, last_event_id=version) as stream:
            seen = b""
            async for chunk in stream.chunks():
                seen += chunk
                if b"bella" in seen:
                    break
        assert b"anna" not in seen
