"""Break-glass: who has the keys has a token, for a while, once, and on record."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from remuda.http.audit import STREAM, SYSTEM, AuditRecord
from remuda.identity.kinds.users import User, UserSpec, user_id
from remuda.identity.operator_tokens import PATH, ROUTES, OperatorRequest, OperatorTokens, new_request, seal_request
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.kernel.errors import Invalid, Unauthenticated
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.identity.launch import ORGANIZATIONS, House
from tests.kit.identity.resource_api import Room, in_a_room
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER

ANN = "ann@example.com"


def operators(world: World, store: SqliteStore) -> OperatorTokens:
    over: dict[str, Any] = {"store": store, "clock": world.clock}
    settings = IdentitySettings()
    more: dict[str, Any] = {**over, "randomness": world.randomness, "settings": settings}
    tokens = Tokens(**more, keys=SigningKeys(**more))
    return OperatorTokens(**over, log=store, sealer=SEALER, tokens=tokens)


def asked(room: Room[OperatorTokens], subject: str = ANN, **changes: Any) -> OperatorRequest:
    request = new_request(
        clock=room.world.clock,
        randomness=room.world.randomness,
        subject=subject,
        life=timedelta(minutes=15),
        operator="root",
        reason="locked out",
    )
    return msgspec.structs.replace(request, **changes)


async def send(room: Room[OperatorTokens], request: OperatorRequest, sealer: Sealer = SEALER) -> Any:
    return await room.ask(None).post(PATH, {"request": seal_request(request, sealer).reveal()})


async def add(room: Room[OperatorTokens], subject: str = ANN, state: Any = "active") -> None:
    user = User(metadata=Metadata(name=user_id(subject)), spec=UserSpec(subject=subject, state=state))
    await room.store.create(user)


async def records(room: Room[OperatorTokens]) -> list[AuditRecord]:
    page = await room.store.read(STREAM, SYSTEM)
    return [msgspec.json.decode(entry.data, type=AuditRecord) for entry in page.entries]


def test_who_has_the_keys_has_a_short_token_on_record() -> None:
    async def scenario(room: Room[OperatorTokens]) -> None:
        await add(room)
        for subject in (ANN, "Ann@Example.com", user_id(ANN)):
            reply = await send(room, asked(room, subject))
            assert reply.status == 200
            claims = await room.service.tokens.verify(reply.json["accessToken"])
            assert (claims.sub, claims.typ, claims.act, claims.uid) == (ANN, "op", "root", user_id(ANN))
            assert claims.exp - claims.iat == 900
        kept = await records(room)
        assert len(kept) == 3, "one record a request"
        for record in kept:
            assert (record.actor.subject, record.actor.actor) == ("operator root", ANN)
            assert record.scope == {"reason": "locked out", "lifetime": "900s"}
            assert (record.resource.type, record.resource.id) == ("users", user_id(ANN))
            assert record.trace_id

    in_a_room(operators, ROUTES, scenario)


async def test_the_organizations_that_the_token_reaches_are_told_too(identity: House) -> None:
    acme, globex = await identity.organization("acme"), await identity.organization("globex")
    await identity.user(ANN, acme)
    request = new_request(
        clock=identity.clock,
        randomness=identity.app.ports.randomness,
        subject=ANN,
        life=timedelta(minutes=5),
        operator="root",
        reason="locked out",
    )
    await identity.app.services.operator_tokens.issue(request)
    root = identity.client(identity.root)
    told = {each: (await root.get(f"{ORGANIZATIONS}/{each}/audit")).json for each in (acme, globex)}
    actors = {each: [record["actor"]["subject"] for record in records] for each, records in told.items()}
    assert "operator root" in actors[acme]
    assert "operator root" not in actors[globex]


def test_a_request_is_good_once_and_for_a_minute() -> None:
    async def scenario(room: Room[OperatorTokens]) -> None:
        await add(room)
        request = asked(room)
        assert (await send(room, request)).status == 200
        again = await send(room, request)
        assert (again.status, "was used before" in again.json["error_description"]) == (401, True)
        stale = asked(room)
        await room.world.clock.sleep(61)
        late = await send(room, stale)
        assert (late.status, "older than a minute" in late.json["error_description"]) == (401, True)
        early = asked(room, made=room.world.clock.now() + timedelta(seconds=5))
        assert (await send(room, early)).status == 401
        assert len(await records(room)) == 1

    in_a_room(operators, ROUTES, scenario)


def test_other_keys_other_texts_and_other_seals_are_worth_nothing() -> None:
    async def scenario(room: Room[OperatorTokens]) -> None:
        await add(room)
        strange = Sealer(Keyring(SealingKey("test", b"x" * 32)))
        assert (await send(room, asked(room), strange)).status == 401
        elsewhere = SEALER.seal(Secret(msgspec.json.encode(asked(room)).decode()), context="continue")
        unlike = SEALER.seal(Secret("{}"), context="identity/operator-request")
        for text in ("", "nonsense", elsewhere, unlike):
            reply = await room.ask(None).post(PATH, {"request": text})
            assert reply.status == 401, text
            assert "keys" in reply.json["error_description"]
        assert (await room.ask(None).post(PATH, {})).status in {400, 422}

    in_a_room(operators, ROUTES, scenario)


def test_a_token_is_for_a_user_who_is_there_and_active_and_for_no_longer_than_an_hour() -> None:
    async def scenario(room: Room[OperatorTokens]) -> None:
        await add(room)
        await add(room, "bob@example.com", "suspended")
        for request, told in (
            (asked(room, "nobody@example.com"), "'nobody@example.com' is not a user"),
            (asked(room, "bob@example.com"), "'bob@example.com' is suspended"),
            (asked(room, life_s=3601), "is not between a second and an hour"),
            (asked(room, life_s=0), "is not between a second and an hour"),
        ):
            reply = await send(room, request)
            assert (reply.status, told in reply.json["error_description"]) == (422, True)
            with pytest.raises(Invalid, match=told):
                await room.service.issue(request)

    in_a_room(operators, ROUTES, scenario)


def test_while_no_process_runs_the_request_is_carried_out_on_the_store_itself() -> None:
    async def scenario(room: Room[OperatorTokens]) -> None:
        await add(room)
        request = asked(room)
        told = await room.service.issue(request)
        assert (await room.service.tokens.verify(told.access_token.reveal())).sub == ANN
        (record,) = await records(room)
        assert record.actor.subject == "operator root"
        with pytest.raises(Unauthenticated):
            await room.service.issue(request)

    in_a_room(operators, ROUTES, scenario)
