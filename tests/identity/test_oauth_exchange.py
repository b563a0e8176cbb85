"""Token exchange: a good token becomes a passport that says no more than is true, for a minute at most."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.identity.kinds.users import Grant, RoleScopes
from remuda.identity.oauth.exchange import ACCESS_TOKEN_TYPE, PASSPORT_TYPE, TOKEN_EXCHANGE
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import PASSPORT
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.oauth import OAuthEnvironment, answer, rejection, said
from tests.kit.identity.resource_api import OTHER_ORG


async def exchange(oauth: OAuthEnvironment, token: str, **form: Any) -> Reply:
    sent = {
        "grant_type": TOKEN_EXCHANGE,
        "subject_token": token,
        "subject_token_type": ACCESS_TOKEN_TYPE,
        **form,
    }
    return await oauth.token({name: value for name, value in sent.items() if value is not None})


async def passport(oauth: OAuthEnvironment, token: str, **form: Any) -> dict[str, Any]:
    reply = await exchange(oauth, token, **form)
    assert reply.status == 200, reply.body
    return said(answer(reply)["access_token"])[1]


async def user_token(oauth: OAuthEnvironment, subject: str = "ann@example.com", *organizations: str) -> str:
    ann = await oauth.user(subject, *organizations)
    return str((await oauth.log_in(ann, await oauth.app()))["access_token"])


async def test_a_users_token_becomes_a_passport(oauth: OAuthEnvironment) -> None:
    org = await oauth.organization()
    token = await user_token(oauth, "ann@example.com", org)
    reply = await exchange(oauth, token, audience=["compute", "ignored"], resource="https://compute.example.com/")
    told = answer(reply)
    assert (told["token_type"], told["issued_token_type"]) == ("Bearer", PASSPORT_TYPE)
    assert 0 < told["expires_in"] <= 60
    claims = await oauth.api.tokens.read(told["access_token"], PASSPORT)
    assert (claims.iss, claims.sub, claims.typ) == ("uni-identity", "ann@example.com", "passport")
    assert (claims.acctype, claims.source, claims.src_iss) == ("user", "uni", "uni")
    assert (claims.email, claims.org_ids) == ("ann@example.com", (org,))
    assert claims.aud == ("https://compute.example.com/", "compute")
    assert (await passport(oauth, token))["jti"] != claims.jti


async def test_a_passport_does_not_outlive_the_token_it_was_made_from(oauth: OAuthEnvironment) -> None:
    token = await user_token(oauth)
    ends = said(token)[1]["exp"]
    oauth.clock.move(timedelta(minutes=59, seconds=40))
    assert (await passport(oauth, token))["exp"] == ends


async def test_a_service_accounts_and_a_services_tokens_become_passports(oauth: OAuthEnvironment) -> None:
    org = await oauth.organization()
    robot = await oauth.account(org)
    issued = await oauth.api.tokens.issue_for_account(robot.name, org)
    await oauth.store.update(replace(robot, spec=replace(robot.spec, access_token=issued.hash)))
    claims = await passport(oauth, issued.token.reveal())
    assert (claims["acctype"], claims["sub"], claims["org_ids"]) == ("service", robot.name, [org])
    assert "email" not in claims
    service = await oauth.api.tokens.issue_for_service("unikorn-region")
    claims = await passport(oauth, service.token.reveal())
    assert (claims["acctype"], claims["sub"], claims["org_ids"]) == ("system", "unikorn-region", [])


async def test_a_service_account_without_groups_gets_a_passport_for_its_own_organization_alone(
    oauth: OAuthEnvironment,
) -> None:
    home, other = await oauth.organization("home"), await oauth.organization("other")
    project = await oauth.project(home)
    robot = await oauth.account(home)
    issued = await oauth.api.tokens.issue_for_account(robot.name, home)
    await oauth.store.update(replace(robot, spec=replace(robot.spec, access_token=issued.hash)))
    token = issued.token.reveal()
    assert (await passport(oauth, token, x_organization_id=home))["org_id"] == home
    for scope in ({"x_organization_id": other}, {"x_organization_id": home, "x_project_id": project}):
        assert rejection(await exchange(oauth, token, **scope)) == (400, "invalid_scope")


async def test_an_organization_or_project_is_written_in_only_if_it_is_within_reach(oauth: OAuthEnvironment) -> None:
    mine, theirs = await oauth.organization("mine"), await oauth.organization("theirs")
    ann = await oauth.user("ann@example.com", mine)
    await oauth.role("worker", RoleScopes(project=(Grant(name="compute:instances", operations=("read",)),)))
    group = await oauth.group(mine, "worker", users=[ann])
    project, closed = await oauth.project(mine, group), await oauth.project(mine)
    foreign = await oauth.project(theirs)
    token = str((await oauth.log_in(ann, await oauth.app()))["access_token"])

    claims = await passport(oauth, token, x_organization_id=mine, x_project_id=project)
    assert (claims["org_id"], claims["project_id"]) == (mine, project)
    for organization in (theirs, OTHER_ORG, "not-an-id", "../etc"):
        reply = await exchange(oauth, token, x_organization_id=organization)
        assert rejection(reply) == (400, "invalid_scope")
        assert answer(reply)["error_description"] == "organization not in scope"
    for other in (closed, foreign, oauth.new_id(), "Not An Id"):
        reply = await exchange(oauth, token, x_organization_id=mine, x_project_id=other)
        assert rejection(reply) == (400, "invalid_scope")
        assert answer(reply)["error_description"] == "project not in scope"
    await oauth.group(mine, "reader", users=[ann])  # which has permissions in the whole organization
    assert (await passport(oauth, token, x_organization_id=mine, x_project_id=closed))["project_id"] == closed


@options(platform_administrators=("root@example.com",))
async def test_who_has_permissions_everywhere_reaches_every_organization_and_project_that_exists(
    oauth: OAuthEnvironment,
) -> None:
    org = await oauth.organization()
    project = await oauth.project(org)
    token = await user_token(oauth, "root@example.com")
    claims = await passport(oauth, token, x_organization_id=org, x_project_id=project)
    assert (claims["org_id"], claims["project_id"]) == (org, project)
    assert rejection(await exchange(oauth, token, x_organization_id=OTHER_ORG)) == (400, "invalid_scope")
    missing = await exchange(oauth, token, x_organization_id=org, x_project_id=oauth.new_id())
    assert rejection(missing) == (400, "invalid_scope")


REFUSED: Mapping[str, tuple[dict[str, Any], str]] = {
    "no token": ({"subject_token": None}, "subject_token must be specified"),
    "no type": ({"subject_token_type": None}, "subject_token_type must be specified"),
    "another type": (
        {"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"},
        "subject_token_type is not supported",
    ),
    "another request": ({"requested_token_type": "urn:other"}, "requested_token_type is not supported"),
    "an actor": ({"actor_token": "x"}, "actor_token is not supported"),
    "an actor's type": ({"actor_token_type": ACCESS_TOKEN_TYPE}, "actor_token is not supported"),
    "a project alone": ({"x_project_id": OTHER_ORG}, "x_organization_id must be specified"),
    "a relative resource": ({"resource": "compute"}, "resource must be an absolute URI"),
    "a resource with a fragment": ({"resource": "https://a.example.com/#b"}, "resource must be an absolute URI"),
    "a broken resource": ({"resource": "https://[a"}, "resource must be an absolute URI"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_request_with_something_wrong_is_refused(oauth: OAuthEnvironment, what: str) -> None:
    form, text = REFUSED[what]
    reply = await exchange(oauth, await user_token(oauth), **form)
    assert rejection(reply) == (400, "invalid_request")
    assert answer(reply)["error_description"].startswith(text)


async def test_what_is_wanted_may_be_named_in_both_ways(oauth: OAuthEnvironment) -> None:
    token = await user_token(oauth)
    for request in (ACCESS_TOKEN_TYPE, PASSPORT_TYPE):
        reply = await exchange(oauth, token, requested_token_type=request)
        assert answer(reply)["issued_token_type"] == PASSPORT_TYPE


async def test_a_token_that_is_not_good_becomes_nothing(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    tokens = await oauth.log_in(ann, app)
    made = answer(await exchange(oauth, tokens["access_token"]))["access_token"]
    bad = ["garbage", made, tokens["id_token"], tokens["refresh_token"]]
    await oauth.suspend(ann)
    for token in (*bad, tokens["access_token"]):
        reply = await exchange(oauth, token)
        assert rejection(reply) == (401, "access_denied")
        assert answer(reply)["error_description"] == "token validation failed"


@options(passport_lifetime=timedelta(seconds=10))
async def test_a_passports_life_is_a_minute_unless_an_operator_says_less(oauth: OAuthEnvironment) -> None:
    assert IdentitySettings().passport_lifetime == timedelta(seconds=60)
    claims = await passport(oauth, await user_token(oauth))
    assert claims["exp"] - claims["iat"] == 10
