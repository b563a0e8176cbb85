"""What the API leaves in the audit: one record for every write of a known caller, whatever came of it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.http.api import ApiSettings
from remuda.http.asgi import ClientDisconnect
from remuda.kernel.errors import Conflict
from tests.kit.sample_api.pipeline import HORSE, HORSES, ORGANIZATION, Running, running

ONE = f"{HORSES}/{HORSE}"
GOOD = {"metadata": {"name": "bella"}, "spec": {"age": 7}}


async def audited(api: Running) -> list[dict[str, Any]]:
    page = await api.store.read("audit", f"organization/{ORGANIZATION}")
    return [msgspec.json.decode(entry.data) for entry in page.entries]


async def test_every_write_of_a_known_caller_is_audited_however_it_ends(tmp_path: Path) -> None:
    def fail() -> None:
        raise Conflict("Horse", "bella")

    def break_down() -> None:
        raise ZeroDivisionError

    async with running(tmp_path) as api:
        await api.client.post(HORSES, GOOD)
        api.service.act = fail
        await api.client.delete(ONE)
        api.service.act = break_down
        await api.client.delete(ONE)
        await api.client.get(ONE)
        records = await audited(api)
    assert [(each["operation"]["method"], each["result"]["status"]) for each in records] == [
        ("POST", 201),
        ("DELETE", 409),
        ("DELETE", 500),
    ]
    assert records[1]["resource"] == {"type": "horses", "id": HORSE}
    assert records[1]["actor"]["subject"] == "anna@example.com"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        ({"metadata": {"name": 7}}, {}, 400),
        (GOOD, {"content-type": "text/plain"}, 400),
        (GOOD, {"content-length": "x"}, 400),
        (GOOD, {"if-match": " "}, 400),
        (GOOD, {"idempotency-key": " "}, 400),
        (b"x" * 101, {}, 413),
    ],
)
async def test_a_write_that_is_refused_before_it_is_understood_is_audited(
    tmp_path: Path, body: Any, headers: dict[str, str], status: int
) -> None:
    async with running(tmp_path, settings=ApiSettings(body_limit=100)) as api:
        assert (await api.client.post(HORSES, body, **headers)).status == status
        (record,) = await audited(api)
        assert (record["result"], record["resource"]) == ({"status": status}, {"type": "horses", "id": ""})
        assert record["actor"]["subject"] == "anna@example.com"
        assert api.service.calls == []


async def test_a_body_that_comes_too_slowly_is_audited(tmp_path: Path) -> None:
    async with running(tmp_path, settings=ApiSettings(body_timeout_s=0.01)) as api:
        statuses: list[int] = []

        async def receive() -> Any:
            await api.clock.sleep(3600)

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        await api.api(scope(), receive, send)
        assert statuses == [408]
        assert [record["result"] for record in await audited(api)] == [{"status": 408}]


async def test_a_caller_who_is_unknown_or_asks_too_often_is_not_audited(tmp_path: Path) -> None:
    async with running(tmp_path, quota=1) as api:
        assert (await api.client.having("wrong").post(HORSES, b"{")).status == 401
        assert (await api.client.post(HORSES, b"{")).status == 400
        assert (await api.client.post(HORSES, b"{")).status == 429
        assert len(await audited(api)) == 1


async def test_a_request_that_never_arrived_whole_is_not_audited(tmp_path: Path) -> None:
    async with running(tmp_path) as api:

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(_message: Any) -> None:
            raise AssertionError("nobody is there")

        with pytest.raises(ClientDisconnect):
            await api.api(scope(), receive, send)
        assert await audited(api) == []


def scope() -> dict[str, Any]:
    headers = [(b"authorization", b"Bearer good"), (b"content-type", b"application/json")]
    path = HORSES.encode()
    return {"type": "http", "method": "POST", "path": HORSES, "raw_path": path, "query_string": b"", "headers": headers}


async def test_an_answer_that_is_given_again_is_marked_as_such(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        for _ in range(2):
            await api.client.post(HORSES, GOOD, idempotency_key="k")
        records = await audited(api)
    assert [each["result"] for each in records] == [{"status": 201}, {"status": 201, "replayed": True}]
