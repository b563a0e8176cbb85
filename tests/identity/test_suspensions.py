"""Persons whom a platform administrator suspends everywhere."""

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from remuda.http.audit import AuditRecord
from remuda.http.sse import EventReader, Received
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import OrganizationUser, User, membership_id, user_id
from remuda.identity.ports import Fetched
from remuda.identity.settings import RoleBinding
from remuda.resources.conventions import NAME
from remuda.store.objects import Metadata
from tests.kit.asgi.client import Client
from tests.kit.identity.environment import ORGANIZATIONS, ROOT, IdentityEnvironment, expect
from tests.kit.identity.external_issuer import AUDIENCE, ELSEWHERE, Issuer
from tests.kit.identity.launch import run_identity, settings
from tests.kit.identity.login import Browser

PATH = "/api/v1/suspensions"
ANN = "ann@example.com"
PASSWORD = "correct horse battery staple"


async def suspend(identity: IdentityEnvironment, subject: str = ANN, **more: str) -> str:
    made = expect(await identity.client(identity.root).post(PATH, {"subject": subject, **more}), 201)
    return str(made["id"])


async def status(identity: IdentityEnvironment, token: str, path: str = "/oauth2/v2/userinfo") -> int:
    return (await identity.client(token).get(path)).status


def test_m27_every_token_of_a_suspended_person_ends_at_once_in_every_organization() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        acme, other = await identity.organization("acme"), await identity.organization("other")
        tokens = [await identity.member(ANN, each, "administrator") for each in (acme, other)]
        bob = await identity.member("bob@example.com", acme, "administrator")
        places = [f"{ORGANIZATIONS}/{each}" for each in (acme, other)]
        for token, place in zip(tokens, places, strict=True):
            assert await status(identity, token, place) == 200
        await suspend(identity)
        for token, place in zip(tokens, places, strict=True):
            assert await status(identity, token, place) == 401
            assert await status(identity, token) == 401
        assert await status(identity, bob, places[0]) == 200
        assert not [each for each in (await identity.store.list(Session)).items if each.spec.user == user_id(ANN)]

    run_identity(scenario)


def test_resuming_restores_the_memberships_as_they_were_and_no_session() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        acme, other = await identity.organization("acme"), await identity.organization("other")
        token = await identity.member(ANN, acme, "administrator")
        await identity.user(ANN, other, state="suspended")
        before = [await membership(identity, each) for each in (acme, other)]
        name = await suspend(identity)
        assert [await membership(identity, each) for each in (acme, other)] == before
        assert name == user_id(ANN)
        expect(await identity.client(identity.root).delete(f"{PATH}/{name}"), 204)
        assert [await membership(identity, each) for each in (acme, other)] == before
        assert await status(identity, token) == 401, "it has to log in again"
        again = await identity.log_in(ANN)
        assert await status(identity, again, f"{ORGANIZATIONS}/{acme}") == 200
        assert await status(identity, again, f"{ORGANIZATIONS}/{other}") == 403
        assert (await identity.client(identity.root).delete(f"{PATH}/{name}")).status == 404

    run_identity(scenario)


async def membership(identity: IdentityEnvironment, organization: str) -> OrganizationUser:
    return await identity.store.get(OrganizationUser, membership_id(organization, user_id(ANN)))


def test_a_suspended_person_cannot_log_in_nor_go_on_in_a_browser() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        await identity.local(ANN, PASSWORD)
        browser = Browser(Client(app=identity.asgi, contract=None))
        page = await browser.get("/oauth2/v2/account")
        await browser.submit(page, email=ANN, password=PASSWORD)
        assert ANN in (await browser.get("/oauth2/v2/account")).body.decode()
        name = await suspend(identity)
        page = await browser.get("/oauth2/v2/account")
        assert ANN not in page.body.decode()
        assert (await browser.submit(page, email=ANN, password=PASSWORD)).status == 401
        expect(await identity.client(identity.root).delete(f"{PATH}/{name}"), 204)
        page = await browser.get("/oauth2/v2/account")
        assert ANN not in page.body.decode(), "the login in the browser does not come back"
        assert (await browser.submit(page, email=ANN, password=PASSWORD)).status == 302

    run_identity(scenario)


def test_a_watch_of_a_suspended_person_ends_and_shows_nothing_more() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        acme = await identity.organization()
        token, reader, found = await identity.member(ANN, acme, "administrator"), EventReader(), list[Received]()
        async with identity.client(token).stream(ORGANIZATIONS, {"watch": "true"}) as stream, asyncio.timeout(60):
            async for chunk in stream.chunks():
                found += reader.feed(chunk)
                if found[-1].type == "bookmark":
                    break
            await suspend(identity)
            body = {"metadata": {"name": "renamed"}, "spec": {"organizationType": "adhoc"}}
            expect(await identity.client(identity.root).put(f"{ORGANIZATIONS}/{acme}", body), 200)
            later: list[Received] = []
            async for chunk in stream.chunks():
                later += reader.feed(chunk)
        assert [(each.type, b"unauthenticated" in each.data) for each in later] == [("end", True)]

    run_identity(scenario)


def test_a_session_that_a_crash_left_is_ended_when_the_suspension_is_repeated_or_resumed() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        name = await suspend(identity)
        for act in ("repeat", "resume"):
            user = await identity.store.get(User, name)
            await identity.app.tokens.sessions.begin(user=user, client="console")
            if act == "repeat":
                await suspend(identity)
            else:
                expect(await identity.client(identity.root).delete(f"{PATH}/{name}"), 204)
            sessions = (await identity.store.list(Session)).items
            assert not [each for each in sessions if each.spec.user == name]

    run_identity(scenario)


@pytest.mark.parametrize("is_known", [True, False])
def test_tokens_of_an_external_issuer_do_not_act_for_a_suspended_person(*, is_known: bool) -> None:
    issuers: list[Issuer] = []

    async def fetch(*asked: Any, organization: str) -> Fetched:
        return await issuers[0](*asked, organization=organization)

    async def scenario(identity: IdentityEnvironment) -> None:
        issuers.append(Issuer(identity.clock.now))
        trust = BearerTrust(audience=AUDIENCE, allow_external_identity=True)
        spec = OAuth2ProviderSpec(issuer=ELSEWHERE, bearer_trust=trust)
        metadata = Metadata(name="d1111111-0000-4000-8000-000000000001", labels={NAME: "elsewhere"})
        await identity.store.create(OAuth2Provider(metadata=metadata, spec=spec))
        if is_known:
            await identity.member(ANN, await identity.organization())
        token = issuers[0].token(ANN)
        assert await status(identity, token, "/api/v1/organizations") == 200
        name = await suspend(identity)
        assert await status(identity, token, "/api/v1/organizations") == 401
        expect(await identity.client(identity.root).delete(f"{PATH}/{name}"), 204)
        assert await status(identity, token, "/api/v1/organizations") == 200

    binding = RoleBinding(subject=ANN, roles=("platform-reader",), issuer=ELSEWHERE)
    run_identity(scenario, settings=settings(role_bindings=(binding,)), fetch=fetch)


def test_suspensions_are_listed_with_reason_and_audited_without_it() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        acme = await identity.organization()
        await identity.member(ANN, acme, "administrator")
        name = await suspend(identity, "ANN@example.com ", reason="stolen laptop")
        (listed,) = expect(await identity.client(identity.root).get(PATH), 200)
        assert listed | {"since": ""} == {
            "id": name,
            "subject": ANN,
            "since": "",
            "by": ROOT,
            "reason": "stolen laptop",
        }
        expect(await identity.client(identity.root).delete(f"{PATH}/{name}"), 204)
        assert expect(await identity.client(identity.root).get(PATH), 200) == []
        for stream in ("system", f"organization/{acme}"):
            entries = (await identity.store.read("audit", stream, limit=1000)).entries
            records = [msgspec.json.decode(each.data, type=AuditRecord) for each in entries]
            told = [
                (each.operation.method, each.actor.subject, each.resource.id)
                for each in records
                if each.operation.route.startswith(PATH)
            ]
            assert told == [("POST", ROOT, name), ("DELETE", ROOT, name)]
            assert b"stolen" not in b"".join(bytes(each.data) for each in entries)

    run_identity(scenario)


def test_nobody_suspends_oneself_and_organizations_suspend_nobody() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        reply = await identity.client(identity.root).post(PATH, {"subject": ROOT.upper()})
        assert (reply.status, "yourself" in reply.body.decode()) == (403, True)
        assert await status(identity, identity.root) == 200
        administrator = await identity.member(ANN, await identity.organization(), "administrator")
        assert (await identity.client(administrator).post(PATH, {"subject": "bob@example.com"})).status == 403
        assert (await identity.client(administrator).get(PATH)).status == 403
        assert (await identity.client(identity.root).post(PATH, {"subject": "nonsense"})).status == 400

    run_identity(scenario)


def test_an_operation_that_is_rolled_back_does_not_remove_a_suspension() -> None:
    async def scenario(identity: IdentityEnvironment) -> None:
        await identity.log_in(ANN)
        user = await identity.store.get(User, user_id(ANN))
        await identity.store.update(replace(user, spec=replace(user.spec, creators=("an operation",))))
        await suspend(identity)
        found = await identity.store.get(User, user_id(ANN))
        assert found.spec.creators == ()
        assert found.spec.suspension is not None

    run_identity(scenario)
