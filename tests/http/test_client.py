import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from remuda.access.principal import AccessList, OrganizationAccess
from remuda.http.audit import STREAM as AUDIT
from remuda.http.client import Client, WatchEvent
from remuda.http.pagination import Cursors
from remuda.http.transport import ClientSettings
from remuda.kernel.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    Malformed,
    NotFound,
    PreconditionFailed,
    RemudaError,
    Unauthenticated,
    Unavailable,
)
from remuda.kernel.secrets import Secret
from tests.kit.sample_api.client import BAY, CONTEXT, QUICK, client_of
from tests.kit.sample_api.collections import fill
from tests.kit.sample_api.server import SampleServer, sample_server
from tests.kit.sample_api.service import (
    BRAND,
    CREATE,
    GET,
    LIST,
    OFFER,
    PAINT,
    REFER,
    HorsePath,
    HorseQuery,
    HorseRead,
    HorseWrite,
    Offer,
)
from tests.kit.sample_kinds import Horse

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def run_sample(directory: Path) -> AsyncIterator[tuple[SampleServer, Client]]:
    async with sample_server(directory) as running, client_of(running.url) as client:
        yield running, client


async def test_an_answer_comes_back_as_the_routes_type(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (_, client):
        made = await client.send(CREATE, body=BAY)
        assert await client.send(GET, path=HorsePath(horse=made.id)) == HorseRead(id=made.id, colour="bay")
        await client.send(PAINT, path=HorsePath(horse=made.id), body=HorseWrite(colour="grey"))
        assert (await client.send(GET, path=HorsePath(horse=made.id))).colour == "grey"
        branded = await client.send(BRAND, body=BAY)
        assert branded.brand == Secret("sesame")


async def test_errors_come_back_as_the_classes_they_were_raised_as(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        with pytest.raises(NotFound, match="resource not found"):
            await client.send(GET, path=HorsePath(horse="nobody"))
        told = Invalid("colour", "is too loud", remedy="use another")
        for error in (told, Forbidden("no right to this"), Conflict("Horse", "h"), AlreadyExists("Horse", "h")):
            running.service.failures = [error]
            with pytest.raises(type(error)) as back:
                await client.send(CREATE, body=BAY)
            assert (back.value.code, back.value.status, back.value.retry) == (error.code, error.status, error.retry)
        assert not running.service.failures, "none of these is worth another attempt"
        running.service.failures = [told]
        with pytest.raises(Invalid) as invalid:
            await client.send(CREATE, body=BAY)
        assert invalid.value.message == told.message
    async with sample_server(tmp_path) as running, client_of(running.url, token="bad") as stranger:
        with pytest.raises(Unauthenticated, match="token is invalid or has expired"):
            await stranger.send(CREATE, body=BAY)


async def test_every_place_that_is_wrong_comes_back(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (_, client):
        with pytest.raises(Malformed) as told:
            await client.send(CREATE, body=HorseWrite(colour=7, is_tame=8))  # type: ignore[arg-type]  # it is wrong on purpose
        assert {where for where, _ in told.value.problems} == {"/colour", "/isTame"}


async def test_a_write_can_be_bound_to_the_state_that_was_read(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (_, client):
        made = await client.send(CREATE, body=BAY)
        with pytest.raises(PreconditionFailed):
            await client.send(PAINT, path=HorsePath(horse=made.id), body=BAY, if_match='"another"')
        await client.send(PAINT, path=HorsePath(horse=made.id), body=BAY, if_match="*")


@pytest.mark.parametrize(
    "value", ["horses.test.remuda/b-1", "a b", "50%", "%2F", "ä/ö", ".", "..", "../x", "a?b#c", "%252F", "+"]
)
async def test_a_path_parameter_arrives_as_it_was_given(tmp_path: Path, value: str) -> None:
    async with run_sample(tmp_path) as (running, client):
        await client.send(REFER, path=HorsePath(horse=value))
        assert running.service.paths == [value]


async def test_an_empty_path_parameter_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        with pytest.raises(Invalid, match="horseID is empty"):
            await client.send(REFER, path=HorsePath(horse=""))
        assert not running.service.contexts


async def test_query_parameters_arrive_as_they_were_given(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        query = HorseQuery(colour=("a&b", "ü"), tame=False, limit=7)
        await client.send(LIST, query=query)
        assert running.service.queries == [query]


async def test_a_list_is_collected_page_by_page(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        await fill(running.store, [f"h-{number}" for number in range(8)])
        await fill(running.store, ["g-1", "g-2", "g-3", "g-4"], colour="hidden")
        assert [horse.id for horse in await client.collect(LIST)] == [f"h-{number}" for number in range(8)]
        assert all(query.limit == 3 for query in running.service.queries)
        assert len(running.service.queries) > 2
        whole = await client.send(LIST)
        assert len(whole) == 8


async def test_the_trace_and_the_operation_are_passed_on(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        first = await client.send(CREATE, body=BAY, context=CONTEXT)
        again = await client.send(CREATE, body=BAY, context=CONTEXT)
        other = await client.send(CREATE, body=HorseWrite(colour="grey"), context=CONTEXT)
        assert first == again, "an operation that is carried out again does not do it twice"
        assert other.id != first.id, "an operation may send several requests"
        assert len(running.service.contexts) == 2
        assert len({(await client.send(CREATE, body=BAY)).id for _ in range(2)}) == 2


async def test_what_the_server_asks_to_be_sent_again_is_sent_again(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        busy: list[RemudaError] = [Unavailable("not now: try again."), Unavailable("nor now: try again.")]
        running.service.failures = [*busy]
        made = await client.send(CREATE, body=BAY)
        assert len(running.service.contexts) == 3
        assert len({context.operation for context in running.service.contexts}) == 1
        running.service.failures = [*busy]
        assert (await client.send(GET, path=HorsePath(horse=made.id))).id == made.id


async def test_attempts_are_bounded_and_the_last_error_is_told(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        running.service.failures = [Unavailable(f"not now {number}: try again.") for number in range(9)]
        with pytest.raises(Unavailable, match="not now 4"):
            await client.send(CREATE, body=BAY)
        assert len(running.service.contexts) == QUICK.attempts


async def test_every_write_is_audited_once(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        await client.send(CREATE, body=BAY)
        records = await running.store.read(AUDIT, "system")
        assert [msgspec.json.decode(entry.data)["operation"]["method"] for entry in records.entries] == ["POST"]


async def test_a_watch_tells_what_is_there_and_what_happens_and_resumes_when_the_server_comes_back(
    tmp_path: Path,
) -> None:
    async with run_sample(tmp_path) as (running, client):
        made = await client.send(CREATE, body=BAY)
        async with aclosing(client.watch(LIST)) as watch:
            added, synced = await anext(watch), await anext(watch)
            assert added == WatchEvent("added", made, None)
            assert (synced.type, synced.item) == ("synced", None)
            await running.stop()
            painting = await running.store.get(Horse, made.id)
            spec = msgspec.structs.replace(painting.spec, colour="grey")
            await running.store.update(msgspec.structs.replace(painting, spec=spec))
            await running.start()
            changed = await anext(watch)
            assert (changed.type, changed.item) == ("modified", HorseRead(id=made.id, colour="grey"))
            assert changed.version != synced.version
        async with aclosing(client.watch(LIST, since=synced.version)) as watch:
            assert await anext(watch) == changed


async def test_a_watch_ends_when_its_credentials_do(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client), aclosing(client.watch(LIST)) as watch:
        await anext(watch)
        running.doorman.token = "another"
        await asyncio.sleep(1.1)
        await fill(running.store, ["h-1"])
        with pytest.raises(Unauthenticated):
            await anext(watch)


async def test_a_watch_from_a_version_that_is_forgotten_is_gone(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        first = await client.send(CREATE, body=BAY)
        version = (await running.store.get(Horse, first.id)).version
        await client.send(PAINT, path=HorsePath(horse=first.id), body=HorseWrite(colour="grey"))
        running.store._reader.feed(running.store.registry.of(Horse)).lose_history(1_000)
        async with aclosing(client.watch(LIST, since=Cursors(AccessList()).write(version))) as watch:
            with pytest.raises(Gone):
                await anext(watch)


async def test_a_watch_is_gone_when_permissions_change_under_it_or_while_it_is_away(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        async with aclosing(client.watch(LIST)) as watch:
            synced = await anext(watch)
            running.doorman.access = AccessList(organizations={"o": OrganizationAccess()})
            await asyncio.sleep(1.1)
            await fill(running.store, ["h-1"])
            with pytest.raises(Gone):
                await anext(watch)
        async with aclosing(client.watch(LIST, since=synced.version)) as watch:
            with pytest.raises(Gone):
                await anext(watch)
        running.doorman.access = AccessList()
        async with aclosing(client.watch(LIST, since=synced.version)) as watch:
            assert (await anext(watch)).type == "added"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110  another process makes it true
            await asyncio.sleep(0.01)


async def started(directory: Path, port: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.kit.sample_api.server", str(directory), str(port), cwd=ROOT
    )


async def test_a_server_that_is_killed_mid_call_and_comes_back_has_done_it_once(tmp_path: Path) -> None:
    hold, port = tmp_path / "hold", tmp_path / "port"
    hold.touch()
    first = await started(tmp_path, 0)
    await until(lambda: port.exists() and bool(port.read_text()))
    patient = ClientSettings(first_pause_s=0.05, longest_pause_s=0.2, attempts=200, total_s=60)
    async with client_of(f"http://127.0.0.1:{port.read_text()}", settings=patient) as client:
        assert await client.collect(LIST) == []
        async with aclosing(client.watch(LIST)) as watch:
            synced = await anext(watch)
            assert synced.type == "synced"
            call = asyncio.create_task(client.send(CREATE, body=BAY, context=CONTEXT))
            seen = await anext(watch)
            assert seen.type == "added", "the write is done, and its answer is held back"
            first.kill()
            await first.wait()
            hold.unlink()
            second = await started(tmp_path, int(port.read_text()))
            try:
                made = await call
                assert made == seen.item
                assert await client.collect(LIST) == [made]
                await client.send(PAINT, path=HorsePath(horse=made.id), body=HorseWrite(colour="grey"))
                changed = await anext(watch)
                assert (changed.type, changed.item) == ("modified", HorseRead(id=made.id, colour="grey"))
            finally:
                second.kill()
                await second.wait()


async def test_a_form_is_sent_as_one(tmp_path: Path) -> None:
    async with run_sample(tmp_path) as (running, client):
        offer = Offer(colour="bay & white", password=Secret("sésame"), tags=("a", "b"))
        assert (await client.send(OFFER, body=offer)).colour == "bay & white"
        assert running.service.offers == [offer]
