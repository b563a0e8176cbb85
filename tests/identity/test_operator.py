"""Break-glass: who has the keys has a token, for a while, once, and on record."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from remuda.http.audit import STREAM, SYSTEM, AuditRecord
from remuda.identity.kinds.users import User, UserSpec, user_id
from remuda.identity.operator_requests import OperatorRequests, seal_request
from remuda.identity.operator_tokens import PATH, ROUTES, OperatorRequest, OperatorTokens, new_request
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.kernel.errors import Invalid, Unauthenticated
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment
from tests.kit.identity.resource_api import IdentityApi, run_identity_api
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER

ANN = "ann@example.com"


def operators(world: World, store: SqliteStore) -> OperatorTokens:
    over: dict[str, Any] = {"store": store, "clock": world.clock}
    settings = IdentitySettings()
    more: dict[str, Any] = {**over, "randomness": world.randomness, "settings": settings}
    tokens = Tokens(**more, keys=SigningKeys(**more))
    requests = OperatorRequests(**over, log=store, sealer=SEALER)
    return OperatorTokens(requests=requests, tokens=tokens)


def run_operator_tokens(test: Callable[[IdentityApi[OperatorTokens]], Coroutine[Any, Any, None]]) -> None:
    run_identity_api(operators, ROUTES, test)


operator_tokens = provided_by(run_operator_tokens)


def asked(api: IdentityApi[OperatorTokens], subject: str = ANN, **changes: Any) -> OperatorRequest:
    request = new_request(
        clock=api.world.clock,
        randomness=api.world.randomness,
        subject=subject,
        lifetime=timedelta(minutes=15),
        operator="root",
        reason="locked out",
    )
    return msgspec.structs.replace(request, **changes)


async def send(api: IdentityApi[OperatorTokens], request: OperatorRequest, sealer: Sealer = SEALER) -> Any:
    return await api.ask(None).post(PATH, {"request": seal_request(request, sealer).reveal()})


async def add(api: IdentityApi[OperatorTokens], subject: str = ANN, state: Any = "active") -> None:
    user = User(metadata=Metadata(name=user_id(subject)), spec=UserSpec(subject=subject, state=state))
    await api.store.create(user)


async def records(api: IdentityApi[OperatorTokens]) -> list[AuditRecord]:
    page = await api.store.read(STREAM, SYSTEM)
    return [msgspec.json.decode(entry.data, type=AuditRecord) for entry in page.entries]


async def test_who_has_the_keys_has_a_short_token_on_record(operator_tokens: IdentityApi[OperatorTokens]) -> None:
    await add(operator_tokens)
    for subject in (ANN, "Ann@Example.com", user_id(ANN)):
        reply = await send(operator_tokens, asked(operator_tokens, subject))
        assert reply.status == 200
        claims = await operator_tokens.service.tokens.verify(reply.json["accessToken"])
        assert (claims.sub, claims.typ, claims.act, claims.uid) == (ANN, "op", "root", user_id(ANN))
        assert claims.exp - claims.iat == 900
    kept = await records(operator_tokens)
    assert len(kept) == 3, "one record a request"
    for record in kept:
        assert (record.actor.subject, record.actor.actor) == ("operator root", ANN)
        assert record.scope == {"reason": "locked out", "lifetime": "900s"}
        assert (record.resource.type, record.resource.id) == ("users", user_id(ANN))
        assert record.trace_id


async def test_the_organizations_that_the_token_reaches_are_told_too(identity: IdentityEnvironment) -> None:
    acme, globex = await identity.organization("acme"), await identity.organization("globex")
    await identity.user(ANN, acme)
    request = new_request(
        clock=identity.clock,
        randomness=identity.app.ports.randomness,
        subject=ANN,
        lifetime=timedelta(minutes=5),
        operator="root",
        reason="locked out",
    )
    await identity.app.services.operator_tokens.issue(request)
    root = identity.client(identity.root)
    told = {each: (await root.get(f"{ORGANIZATIONS}/{each}/audit")).json for each in (acme, globex)}
    actors = {each: [record["actor"]["subject"] for record in records] for each, records in told.items()}
    assert "operator root" in actors[acme]
    assert "operator root" not in actors[globex]
    assert "locked out" not in str(told[acme]), "the reason is for the audit of the system"
    system = (await root.get("/api/v1/audit", [("actor", "operator root")])).json
    assert [record["scope"]["reason"] for record in system] == ["locked out"]


async def test_a_request_is_good_once_and_for_a_minute(operator_tokens: IdentityApi[OperatorTokens]) -> None:
    await add(operator_tokens)
    request = asked(operator_tokens)
    assert (await send(operator_tokens, request)).status == 200
    again = await send(operator_tokens, request)
    assert (again.status, "was used before" in again.json["error_description"]) == (401, True)
    stale = asked(operator_tokens)
    await operator_tokens.world.clock.sleep(61)
    late = await send(operator_tokens, stale)
    assert (late.status, "older than a minute" in late.json["error_description"]) == (401, True)
    early = asked(operator_tokens, created=operator_tokens.world.clock.now() + timedelta(seconds=5))
    assert (await send(operator_tokens, early)).status == 401
    assert len(await records(operator_tokens)) == 1


async def test_other_keys_other_texts_and_other_seals_are_worth_nothing(
    operator_tokens: IdentityApi[OperatorTokens],
) -> None:
    await add(operator_tokens)
    strange = Sealer(Keyring(SealingKey("test", b"x" * 32)))
    assert (await send(operator_tokens, asked(operator_tokens), strange)).status == 401
    elsewhere = SEALER.seal(Secret(msgspec.json.encode(asked(operator_tokens)).decode()), context="continue")
    unlike = SEALER.seal(Secret("{}"), context="operator token request")
    for text in ("", "nonsense", elsewhere, unlike):
        reply = await operator_tokens.ask(None).post(PATH, {"request": text})
        assert reply.status == 401, text
        assert "keys" in reply.json["error_description"]
    assert (await operator_tokens.ask(None).post(PATH, {})).status in {400, 422}


async def test_a_token_is_for_a_user_who_is_there_and_active_and_for_no_longer_than_an_hour(
    operator_tokens: IdentityApi[OperatorTokens],
) -> None:
    await add(operator_tokens)
    await add(operator_tokens, "bob@example.com", "suspended")
    for request, told in (
        (asked(operator_tokens, "nobody@example.com"), "'nobody@example.com' is not a user"),
        (asked(operator_tokens, "bob@example.com"), "'bob@example.com' is suspended"),
        (asked(operator_tokens, lifetime_s=3601), "is not between a second and an hour"),
        (asked(operator_tokens, lifetime_s=0), "is not between a second and an hour"),
    ):
        reply = await send(operator_tokens, request)
        assert (reply.status, told in reply.json["error_description"]) == (422, True)
        with pytest.raises(Invalid, match=told):
            await operator_tokens.service.issue(request)


async def test_while_no_process_runs_the_request_is_carried_out_on_the_store_itself(
    operator_tokens: IdentityApi[OperatorTokens],
) -> None:
    await add(operator_tokens)
    request = asked(operator_tokens)
    told = await operator_tokens.service.issue(request)
    assert (await operator_tokens.service.tokens.verify(told.access_token.reveal())).sub == ANN
    (record,) = await records(operator_tokens)
    assert record.actor.subject == "operator root"
    with pytest.raises(Unauthenticated):
        await operator_tokens.service.issue(request)
