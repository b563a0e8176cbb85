"""What the example service does, seen through its API."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from remuda.kernel.errors import Unavailable
from tests.example.authenticator import ORGANIZATION
from tests.example.customers import MOUNTS, YARDS
from tests.example.kinds import IN_CARE, Ledger, Mount, Stall, Yard
from tests.example.running import Running, new_mount, new_yard, running, serving

OPERATIONS = "/api/v1/operations"
NOBODYS = "c0000000-0000-4000-8000-000000000000"


async def used(livery: Running, yard: str) -> int:
    return (await livery.store.get(Ledger, yard)).spec.used


async def test_a_mount_lives_from_its_yard_to_the_pasture_and_back(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("user")
        yard = await livery.make_yard()
        mount = await livery.make_mount(yard)
        read = await livery.until_provisioned(mount)
        assert read.json["metadata"]["healthStatus"] == "healthy"
        assert read.json["metadata"]["createdBy"] == "user@example.com"
        assert [grazing.breed for grazing in livery.pasture.mounts.values()] == ["mule"]
        assert await used(livery, yard) == 1

        moved = {"metadata": {"name": "bella"}, "spec": {"breed": "mule", "paddock": "north"}}
        assert (await client.put(f"{MOUNTS}/{mount}", moved)).status == 202

        async def is_north() -> bool:
            return [grazing.paddock for grazing in livery.pasture.mounts.values()] == ["north"]

        await livery.eventually("it grazes in the north", is_north)
        assert (await client.delete(f"{MOUNTS}/{mount}")).status == 202
        await livery.until_gone(f"{MOUNTS}/{mount}")
        assert not livery.pasture.mounts
        assert await used(livery, yard) == 0


async def test_a_yard_goes_with_everything_in_it(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        yard = await livery.make_yard()
        await livery.until_provisioned(await livery.make_mount(yard))
        assert (await livery.client("user").delete(f"{YARDS}/{yard}")).status == 202
        await livery.until_gone(f"{YARDS}/{yard}")
        assert not livery.pasture.mounts
        for kind in (Yard, Mount, Ledger, Stall):
            assert not (await livery.store.list(kind)).items, f"no {kind.__name__} is left"


async def test_a_quota_refuses_one_more_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        yard = await livery.make_yard(stalls=1)
        await livery.make_mount(yard, "bella")
        refused = await livery.client("user").post(MOUNTS, new_mount(yard, "cloud"))
        assert (refused.status, refused.json["error"]) == (403, "forbidden")
        assert [mount.metadata.labels["unikorn-cloud.org/name"] for mount in await mounts(livery)] == ["bella"]
        assert await used(livery, yard) == 1


async def mounts(livery: Running) -> list[Mount]:
    return list((await livery.store.list(Mount)).items)


async def test_of_many_who_want_one_name_and_few_stalls_none_gets_what_another_has(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        yard = await livery.make_yard(stalls=2)
        wanted = [new_mount(yard, name) for name in ("bella", "bella", "bella", "cloud", "duke")]
        replies = await asyncio.gather(*[livery.client("user").post(MOUNTS, body) for body in wanted])
        assert {reply.status for reply in replies} <= {201, 403, 409}
        made = [reply.json["status"]["operationId"] for reply in replies if reply.status == 201]
        assert sorted(mount.spec.operation for mount in await mounts(livery)) == sorted(made)
        assert await used(livery, yard) == len(made)


async def test_limits_below_what_is_used_and_changes_of_what_cannot_change_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("user")
        yard = await livery.make_yard(stalls=2)
        mount = await livery.make_mount(yard)
        assert (await client.put(f"{YARDS}/{yard}", new_yard(stalls=0))).status == 422
        renamed = {"metadata": {"name": "other"}, "spec": {"breed": "mule"}}
        assert (await client.put(f"{MOUNTS}/{mount}", renamed)).status == 422
        tagged = {"metadata": {"name": "bella", "tags": [{"name": "a", "value": "1"}] * 2}, "spec": {"breed": "mule"}}
        assert (await client.put(f"{MOUNTS}/{mount}", tagged)).status == 422
        assert (await client.post(MOUNTS, new_mount(yard, "cloud", breed="unicorn"))).status == 422
        missing = await client.post(MOUNTS, {"metadata": {}, "spec": {"yardId": "x", "breed": ""}})
        assert missing.status == 400
        wrong = {problem["pointer"] for problem in missing.json["problems"]}
        assert wrong == {"/metadata/name", "/spec/yardId", "/spec/breed"}


async def test_a_write_under_if_match_holds_what_was_read_and_no_status_disturbs_it(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("user")
        mount = await livery.make_mount(await livery.make_yard())
        early = (await client.get(f"{MOUNTS}/{mount}")).headers["etag"]
        late = (await livery.until_provisioned(mount)).headers["etag"]
        assert early == late
        moved = {"metadata": {"name": "bella"}, "spec": {"breed": "mule", "paddock": "north"}}
        assert (await client.put(f"{MOUNTS}/{mount}", moved, if_match=late)).status == 202
        assert (await client.put(f"{MOUNTS}/{mount}", moved, if_match=late)).status == 412
        assert (await client.delete(f"{MOUNTS}/{mount}", if_match=late)).status == 412
        assert (await client.delete(f"{MOUNTS}/{mount}", if_match="*")).status == 202


async def test_a_request_sent_twice_under_a_key_is_done_once(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("user")
        first = await client.post(YARDS, new_yard(), idempotency_key="one")
        again = await client.post(YARDS, new_yard(), idempotency_key="one")
        assert (again.status, again.body) == (first.status, first.body)
        assert again.headers["idempotency-replayed"] == "true"
        assert (await client.post(YARDS, new_yard(stalls=9), idempotency_key="one")).status == 422
        assert len((await livery.store.list(Yard)).items) == 1


async def test_a_brand_is_told_once_and_kept_sealed(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("user")
        mount = await livery.make_mount(await livery.make_yard())
        told = await client.post(f"{MOUNTS}/{mount}/brand", idempotency_key="brand")
        brand = told.json["brand"]
        assert (await livery.store.get(Mount, mount)).spec.brand.reveal() == brand  # type: ignore[union-attr]  # it has one by now
        again = await client.post(f"{MOUNTS}/{mount}/brand", idempotency_key="brand")
        assert again.status == 409
        assert brand not in again.body.decode()
        assert brand.encode() not in everything_in(tmp_path)


def everything_in(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir())


async def test_a_timeline_tells_what_made_a_mount_and_what_came_of_it(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        mount = await livery.make_mount(await livery.make_yard())
        await livery.until_provisioned(mount)
        told = (await livery.client("reader").get(f"{MOUNTS}/{mount}/timeline")).json
        phases = [entry["event"]["phase"] for entry in told if "phase" in entry["event"]]
        events = [entry["event"]["event"] for entry in told if "reconcileId" in entry["event"]]
        assert phases == ["running", "done"]
        assert "TurnedOut" in events
        assert events[-1] == "ConditionChanged"


async def test_a_reference_keeps_a_yard_and_nobody_takes_our_own_off(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("user")
        yard = await livery.make_yard()
        reference = f"{YARDS}/{yard}/references/stages.coach.example%252F{NOBODYS}"
        assert (await client.put(reference)).status == 201
        assert (await client.put(reference)).status == 201
        assert (await client.delete(f"{YARDS}/{yard}")).status == 202
        own = f"{YARDS}/{yard}/references/{IN_CARE.replace('/', '%252F')}"
        assert (await client.delete(own)).status == 422

        async def is_blocked() -> bool:
            conditions = (await livery.store.get(Yard, yard)).status.conditions
            return any(condition.reason == "InUse" for condition in conditions)

        await livery.eventually("the yard says who uses it", is_blocked)
        assert (await client.delete(reference)).status == 204
        await livery.until_gone(f"{YARDS}/{yard}")


async def test_an_operation_that_cannot_be_undone_is_seen_retried_and_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as livery:
        yard = await livery.make_yard(stalls=1)
        await livery.make_mount(yard, "bella")

        async def refuse(_yard: str, _operation: str) -> None:
            raise Unavailable("The ledger is locked: try again.")

        with monkeypatch.context() as patch:
            patch.setattr(livery.app.stalls, "give_back", refuse)
            assert (await livery.client("user").post(MOUNTS, new_mount(yard, "cloud"))).status == 403
            admin = livery.client("admin")
            assert (await livery.client("user").get(OPERATIONS)).status == 403
            (seen,) = (await admin.get(OPERATIONS)).json
            assert (seen["state"], seen["operation"]) == ("undoing", "mount.create")
            path = f"{OPERATIONS}/{seen['id']}"
            assert (await admin.post(f"{path}/retry")).json["state"] == "undoing"
            assert (await livery.client("user").post(f"{path}/abandon", {"reason": "no"})).status == 403
        assert (await admin.post(f"{path}/retry")).json["state"] == "undone"
        assert (await admin.post(f"{path}/abandon", {"reason": "too late"})).status == 422
        assert (await admin.get(OPERATIONS)).json == []


async def test_a_watch_shows_a_mount_from_its_making_to_its_end(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("reader")
        yard = await livery.make_yard()
        seen: list[str] = []
        async with client.stream(MOUNTS, {"watch": "true"}) as stream, asyncio.timeout(20):
            head = await stream.head()
            assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
            mount = await livery.make_mount(yard)
            await livery.until_provisioned(mount)
            await livery.client("user").delete(f"{MOUNTS}/{mount}")
            async for chunk in stream.chunks():
                seen += [line[7:] for line in chunk.decode().splitlines() if line.startswith("event: ")]
                if "deleted" in seen:
                    break
        assert next(each for each in seen if each != "bookmark") == "added"
        assert seen.count("deleted") == 1


async def test_every_write_leaves_its_audit_record_in_the_same_commit(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        mount = await livery.make_mount(await livery.make_yard())
        await livery.client("user").delete(f"{MOUNTS}/{mount}")
        await livery.client("member").delete(f"{MOUNTS}/{mount}")
        page = await livery.store.read("audit", f"organization/{ORGANIZATION}")
        told: list[Any] = [msgspec.json.decode(entry.data) for entry in page.entries]
        verbs = [(each["operation"]["method"], each["result"]["status"]) for each in told]
        assert verbs == [("POST", 202), ("POST", 201), ("DELETE", 202), ("DELETE", 403)]
        assert told[1]["resource"] == {"type": "mounts", "id": mount}


async def test_the_same_livery_answers_on_a_socket(tmp_path: Path) -> None:
    async with running(tmp_path) as livery, serving(livery) as url, httpx2.AsyncClient(base_url=url) as client:
        version = await client.get("/api/version", headers={"Authorization": "Bearer user"})
        assert (version.status_code, version.json()["name"]) == (200, "remuda-livery")
        assert (await client.get("/api/version")).status_code == 401
