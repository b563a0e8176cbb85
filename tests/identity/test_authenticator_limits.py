"""Tokens whose bearer is less than the user: one organization vouches, or an operator has taken the user's name."""

from datetime import timedelta
from pathlib import Path

import pytest

from remuda.access.principal import Context
from remuda.http.authentication import RequestCredentials, read_claim_of_bearer
from remuda.http.transport import ServiceCredentials
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.users import User
from remuda.kernel.errors import Unauthenticated
from remuda.resources.conventions import ORGANIZATION
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.identity.authenticator import AuthenticatorEnvironment
from tests.kit.identity.remote_authenticator import apart


async def provider_of(authentication: AuthenticatorEnvironment, organization: str | None) -> str:
    labels = {} if organization is None else {ORGANIZATION: organization}
    spec = OAuth2ProviderSpec(issuer="https://login.example.com", client_id="us")
    made = await authentication.store.create(
        OAuth2Provider(metadata=Metadata(name=authentication.new_id(), labels=labels), spec=spec)
    )
    return made.name


async def organizations_by(authentication: AuthenticatorEnvironment, provider: str) -> tuple[str, ...]:
    """Return where Ann has permissions who logged in at a provider and is in two organizations, an admin of one."""
    acme, bolt = await authentication.organization("acme"), await authentication.organization("bolt")
    if provider == "of acme":
        provider = await provider_of(authentication, acme)
    elif provider == "of all":
        provider = await provider_of(authentication, None)
    ann = await authentication.user("ann@example.com", acme, bolt)
    await authentication.group(bolt, "administrator", users=[ann])
    session = await authentication.tokens.sessions.begin(user=ann, client="console", provider=provider)
    token = (await authentication.tokens.tokens.issue_for_session(ann, session)).token.reveal()
    principal = await authentication.authenticator.authenticate(RequestCredentials(token=token))
    assert set(principal.organizations) == set(principal.access.organizations)
    assert not principal.access.everywhere
    return tuple("acme" if each == acme else "bolt" for each in sorted(principal.organizations, key=(acme, bolt).index))


@pytest.mark.parametrize(
    ("provider", "expected"), [("of acme", ("acme",)), ("of all", ("acme", "bolt")), ("", ("acme", "bolt"))]
)
async def test_what_one_organizations_provider_vouches_for_is_good_in_no_other(
    authentication: AuthenticatorEnvironment, provider: str, expected: tuple[str, ...]
) -> None:
    assert await organizations_by(authentication, provider) == expected


@options(platform_administrators=("ann@example.com",))
async def test_what_one_organizations_provider_vouches_for_is_no_platform_administrator(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    session = await authentication.tokens.sessions.begin(
        user=ann, client="console", provider=await provider_of(authentication, acme)
    )
    token = (await authentication.tokens.tokens.issue_for_session(ann, session)).token.reveal()
    assert not (await authentication.let_in(token)).access.everywhere
    token, _ = await authentication.log_in(ann)
    assert (await authentication.let_in(token)).access.everywhere


async def vouched_token(authentication: AuthenticatorEnvironment, user: User, organization: str) -> str:
    """Return the token of somebody who logged in at an organization's own provider."""
    session = await authentication.tokens.sessions.begin(
        user=user, client="console", provider=await provider_of(authentication, organization)
    )
    return (await authentication.tokens.tokens.issue_for_session(user, session)).token.reveal()


async def test_a_service_that_impersonates_a_caller_reaches_no_further_than_the_organization_that_vouches(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme, bolt = await authentication.organization("acme"), await authentication.organization("bolt")
    ann = await authentication.user("ann@example.com", bolt)
    await authentication.group(bolt, "administrator", users=[ann])
    caller = await authentication.let_in(await vouched_token(authentication, ann, acme))
    assert (caller.member_of_only, caller.issuer, caller.organizations) == (acme, "", ())
    plain = await authentication.let_in((await authentication.log_in(ann))[0])
    assert (plain.member_of_only, plain.issuer) == (None, "")
    for who, reached in ((caller, set()), (plain, {bolt})):
        told = ServiceCredentials("unikorn-compute").headers(Context(principal=who, operation="x", impersonated=who))
        said = read_claim_of_bearer(told["X-Principal"].encode())
        service = await authentication.let_in(
            certificate=authentication.certificate("unikorn-compute"), claim=said, impersonate=True
        )
        assert set(service.access.organizations) == reached


async def test_a_service_in_another_process_is_told_which_organization_vouches(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        authentication = there.environment
        acme, bolt = await authentication.organization("acme"), await authentication.organization("bolt")
        ann = await authentication.user("ann@example.com", acme, bolt)
        token = await vouched_token(authentication, ann, acme)
        assert (await there.let_in(token)).member_of_only == acme
        assert await there.let_in(token) == await authentication.let_in(token)


async def test_no_session_begins_with_a_provider_that_is_gone(authentication: AuthenticatorEnvironment) -> None:
    ann = await authentication.user("ann@example.com")
    with pytest.raises(Unauthenticated, match="log in again"):
        await authentication.tokens.sessions.begin(user=ann, client="console", provider=authentication.new_id())


async def test_what_an_operator_does_in_a_users_name_says_who_it_was(authentication: AuthenticatorEnvironment) -> None:
    ann = await authentication.user("ann@example.com")
    issued = await authentication.tokens.tokens.issue_for_operator(ann, operator="root", lifetime=timedelta(minutes=5))
    principal = await authentication.let_in(issued.token.reveal())
    assert (principal.subject, principal.actor_name) == ("ann@example.com", "ann@example.com")
    assert (principal.service, principal.caller) == ("operator root", "operator root for ann@example.com")
