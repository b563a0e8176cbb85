"""Bearer tokens of external issuers: whom they let in, and with what."""

from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import AccessList
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider
from remuda.identity.kinds.users import User
from remuda.identity.settings import GroupBinding, RoleBinding
from remuda.identity.tokens.jwt import PASSPORT, PASSPORT_ISSUER, PassportClaims
from remuda.kernel.errors import Unauthenticated
from tests.kit.environment import options
from tests.kit.identity.builtin_roles import EXPECTED
from tests.kit.identity.external_issuer import (
    AUDIENCE,
    CLAIMS,
    ELSEWHERE,
    FIRST,
    GROUPS,
    SECOND,
    Issuer,
    IssuerEnvironment,
    key,
    published,
    signed,
)

READER = EXPECTED["reader"].organization
EVERYTHING = EXPECTED["platform-reader"].everywhere
NOBODY = "user identity not found or inactive"
ANN = "ann@example.com"
OPS = GroupBinding(issuer=ELSEWHERE, group="ops", roles=("platform-reader",))


async def with_ann(external_issuer: IssuerEnvironment, **trust: Any) -> str:
    """Make Ann a reader of an organization, trust the issuer, and return the organization."""
    acme = await external_issuer.organization()
    ann = await external_issuer.user(ANN, acme)
    await external_issuer.group(acme, "reader", users=[ann])
    await external_issuer.trust(**trust)
    return acme


async def test_a_token_is_the_user_with_the_permissions_it_has_here(external_issuer: IssuerEnvironment) -> None:
    acme = await with_ann(external_issuer)
    principal = await external_issuer.let_in(external_issuer.issuer.token(ANN))
    assert (principal.subject, principal.type, principal.organizations) == (ANN, "user", (acme,))
    assert principal.access.organizations[acme].permissions == READER
    assert (principal.issuer, principal.member_of_only) == (ELSEWHERE, None)
    bearer = await external_issuer.tokens.bearers.identify(external_issuer.issuer.token(ANN))
    assert (bearer.issuer, bearer.source, bearer.claims) == (ELSEWHERE, FIRST, None)


async def test_where_somebody_is_a_member_is_not_the_issuers_to_say(external_issuer: IssuerEnvironment) -> None:
    acme = await with_ann(external_issuer, require_authz_claim=True)
    other = await external_issuer.organization("other")
    said = {f"{CLAIMS}/authz": {"acctype": "user", "orgIds": [other]}}
    assert (await external_issuer.let_in(external_issuer.issuer.token(ANN, **said))).organizations == (acme,)


@pytest.mark.parametrize("email", ["ANN@Example.COM", "  ann@example.com ", "Ann@example.com"])
async def test_an_address_is_the_same_however_it_is_written(external_issuer: IssuerEnvironment, email: str) -> None:
    await with_ann(external_issuer)
    assert (await external_issuer.let_in(external_issuer.issuer.token(email))).subject == ANN


async def test_who_is_not_known_here_is_refused_or_let_in_with_nothing(external_issuer: IssuerEnvironment) -> None:
    provider = await external_issuer.trust()
    token = external_issuer.issuer.token("Eve@Example.com")
    assert await external_issuer.rejection(token) == NOBODY
    trust = BearerTrust(audience=AUDIENCE, allow_external_identity=True)
    await external_issuer.store.update(replace(provider, spec=replace(provider.spec, bearer_trust=trust)))
    principal = await external_issuer.let_in(token)
    assert (principal.subject, principal.type) == ("eve@example.com", "user")
    assert (principal.access, principal.organizations) == (AccessList(), ())


@pytest.mark.parametrize("state", ["suspended", "pending"])
@pytest.mark.parametrize("subject", [ANN, "Ann@Example.com"])
async def test_who_is_not_active_is_refused_even_where_strangers_are_let_in(
    external_issuer: IssuerEnvironment, state: UserState, subject: str
) -> None:
    await external_issuer.trust(allow_external_identity=True)
    await external_issuer.user(subject, state=state)
    for email in (ANN, "Ann@Example.com", "ANN@EXAMPLE.COM"):
        assert await external_issuer.rejection(external_issuer.issuer.token(email)) == NOBODY
        with pytest.raises(Unauthenticated, match=NOBODY):
            await external_issuer.external(external_issuer.issuer.token(email))


async def test_who_is_suspended_or_removed_is_out_at_once(external_issuer: IssuerEnvironment) -> None:
    await external_issuer.trust()
    ann, bob = await external_issuer.user(ANN), await external_issuer.user("bob@example.com")
    tokens = [external_issuer.issuer.token(ANN), external_issuer.issuer.token("bob@example.com")]
    for token in tokens:
        await external_issuer.let_in(token)
    await external_issuer.suspend(ann)
    await external_issuer.remove(User, bob.name)
    assert [await external_issuer.rejection(token) for token in tokens] == [NOBODY, NOBODY]


@options(
    platform_administrators=(ANN, "root@example.com", "boss@example.com"),
    role_bindings=(RoleBinding(subject="looker@example.com", roles=("platform-reader",)),),
)
async def test_an_issuer_that_names_an_administrator_of_ours_has_made_nobody_one(
    external_issuer: IssuerEnvironment,
) -> None:
    acme = await with_ann(external_issuer, allow_external_identity=True)
    assert (
        await external_issuer.let_in((await external_issuer.log_in(await external_issuer.user("root@example.com")))[0])
    ).access.everywhere
    principal = await external_issuer.let_in(external_issuer.issuer.token(ANN))
    assert not principal.access.everywhere
    assert principal.access.organizations[acme].permissions == READER
    for email in ("root@example.com", "boss@example.com", "looker@example.com"):
        assert (await external_issuer.let_in(external_issuer.issuer.token(email))).access == AccessList()


@options(role_bindings=(RoleBinding(issuer=ELSEWHERE, subject=ANN, roles=("platform-reader",)),))
async def test_what_is_bound_to_an_issuers_user_is_not_ours_to_have_nor_another_issuers(
    external_issuer: IssuerEnvironment,
) -> None:
    other = Issuer(external_issuer.clock.now, "https://other.example")
    external_issuer.others.append(other)
    await external_issuer.trust(allow_external_identity=True)
    await external_issuer.trust(SECOND, issuer=other.url, allow_external_identity=True)
    assert (await external_issuer.let_in(external_issuer.issuer.token(ANN))).access == AccessList(everywhere=EVERYTHING)
    assert (await external_issuer.let_in(other.token(ANN))).access == AccessList()
    token, _ = await external_issuer.log_in(await external_issuer.user(ANN))
    assert (await external_issuer.let_in(token)).access == AccessList()
    assert (await external_issuer.let_in(external_issuer.issuer.token(ANN))).access == AccessList(everywhere=EVERYTHING)


@options(role_bindings=(RoleBinding(issuer=ELSEWHERE, subject="*", roles=("platform-administrator",)),))
async def test_nobody_is_everybody(external_issuer: IssuerEnvironment) -> None:
    await external_issuer.trust(allow_external_identity=True, skip_email_verification=True)
    for email in ("*", "", " ", "ann", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\u0000", f"{'a' * 65}@b"):
        assert "has no e-mail address" in await external_issuer.rejection(external_issuer.issuer.token(email)), email
    anybody = await external_issuer.let_in(external_issuer.issuer.token("any@example.com"))
    assert {each.verb for each in anybody.access.everywhere} == {"read"}


@pytest.mark.parametrize(
    ("named", "is_in"),
    [
        (["ops"], True),
        (["others", 7, None, {"ops": 1}, "ops"], True),
        ("ops", True),
        (["Ops"], False),
        ([" ops"], False),
        ("ops others", False),
        (["ops\u200b"], False),
        ([["ops"]], False),
        ({"ops": True}, False),
        (7, False),
        ([], False),
        (None, False),
    ],
)
@options(group_bindings=(OPS,))
async def test_groups_are_read_as_they_come_and_compared_letter_by_letter(
    external_issuer: IssuerEnvironment, named: Any, *, is_in: bool
) -> None:
    await with_ann(external_issuer, groups_claim=GROUPS)
    principal = await external_issuer.let_in(external_issuer.issuer.token(ANN, **{GROUPS: named}))
    assert principal.access.everywhere == (EVERYTHING if is_in else frozenset())


@pytest.mark.parametrize("claim", ["", "groups"])
@options(group_bindings=(OPS,))
async def test_groups_count_only_from_a_claim_that_is_a_url(external_issuer: IssuerEnvironment, claim: str) -> None:
    await with_ann(external_issuer, groups_claim=claim)
    said = {GROUPS: ["ops"], "groups": ["ops"], "": ["ops"]}
    assert not (await external_issuer.let_in(external_issuer.issuer.token(ANN, **said))).access.everywhere


@options(group_bindings=(OPS,))
async def test_groups_of_one_issuer_are_none_of_another(external_issuer: IssuerEnvironment) -> None:
    other = Issuer(external_issuer.clock.now, "https://other.example")
    external_issuer.others.append(other)
    await external_issuer.trust(allow_external_identity=True, groups_claim=GROUPS)
    await external_issuer.trust(SECOND, issuer=other.url, allow_external_identity=True, groups_claim=GROUPS)
    assert (await external_issuer.let_in(external_issuer.issuer.token(ANN, **{GROUPS: ["ops"]}))).access.everywhere
    assert not (await external_issuer.let_in(other.token(ANN, **{GROUPS: ["ops"]}))).access.everywhere


@options(group_bindings=(OPS,))
async def test_groups_count_for_the_bearer_alone_and_not_in_a_passport(external_issuer: IssuerEnvironment) -> None:
    acme = await with_ann(external_issuer, groups_claim=GROUPS)
    bearer = await external_issuer.tokens.bearers.identify(external_issuer.issuer.token(ANN, **{GROUPS: ["ops"]}))
    assert bearer.groups == ("ops",)
    standing = await external_issuer.permissions.of_bearer(bearer, with_groups=False)
    assert not standing.access.everywhere
    assert standing.access.organizations[acme].permissions == READER


async def test_a_provider_of_an_organization_is_never_believed(external_issuer: IssuerEnvironment) -> None:
    acme = await external_issuer.organization()
    await external_issuer.user(ANN, acme)
    await external_issuer.trust(organization=acme)
    assert await external_issuer.rejection(external_issuer.issuer.token(ANN)) == "token validation failed"
    assert external_issuer.issuer.asked == []
    assert external_issuer.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 1


async def test_a_provider_without_trust_or_on_its_way_out_is_not_believed(external_issuer: IssuerEnvironment) -> None:
    await external_issuer.user(ANN)
    provider = await external_issuer.trust()
    token = external_issuer.issuer.token(ANN)
    await external_issuer.let_in(token)
    kept = replace(provider, metadata=replace(provider.metadata, finalizers=("example.com/kept",)))
    marked = await external_issuer.store.update(kept)
    await external_issuer.store.delete(OAuth2Provider, marked.name, uid=marked.uid)
    assert await external_issuer.rejection(token) == "token validation failed"
    other = await external_issuer.trust(SECOND)
    await external_issuer.let_in(token)
    await external_issuer.store.update(replace(other, spec=replace(other.spec, bearer_trust=None)))
    assert await external_issuer.rejection(token) == "token validation failed"


async def test_of_two_providers_for_one_issuer_the_first_by_name_counts(external_issuer: IssuerEnvironment) -> None:
    await external_issuer.user(ANN)
    await external_issuer.trust(SECOND, audience="second")
    first = await external_issuer.trust(FIRST, audience="first")
    assert (await external_issuer.let_in(external_issuer.issuer.token(ANN, aud="first"))).subject == ANN
    assert (
        await external_issuer.rejection(external_issuer.issuer.token(ANN, aud="second"))
        == "token is for another audience"
    )
    await external_issuer.remove(OAuth2Provider, first.name)
    assert (await external_issuer.let_in(external_issuer.issuer.token(ANN, aud="second"))).subject == ANN


@pytest.mark.parametrize("url", [f"{ELSEWHERE}/", ELSEWHERE.upper(), f"{ELSEWHERE}:443", f" {ELSEWHERE}", ""])
async def test_an_issuer_is_compared_letter_by_letter(external_issuer: IssuerEnvironment, url: str) -> None:
    await external_issuer.user(ANN)
    await external_issuer.trust()
    assert await external_issuer.rejection(external_issuer.issuer.token(ANN, iss=url)) == "token validation failed"
    assert external_issuer.issuer.asked == []


OUR_URL = "https://remuda.test/identity"


@pytest.mark.parametrize("ours", [OUR_URL, f"{OUR_URL}/", "uni", PASSPORT_ISSUER, ""])
@options(issuer=OUR_URL, platform_administrators=(ANN,))
async def test_we_are_no_external_issuer_whatever_a_provider_says(
    external_issuer: IssuerEnvironment, ours: str
) -> None:
    external_issuer.issuer.url = ours
    await external_issuer.user(ANN)
    await external_issuer.trust(issuer=ours)
    assert await external_issuer.rejection(external_issuer.issuer.token(ANN)) == "token validation failed"
    token, _ = await external_issuer.log_in(await external_issuer.user("bob@example.com"))
    assert (await external_issuer.let_in(token)).subject == "bob@example.com"
    assert external_issuer.issuer.asked == []


async def test_no_issuer_signs_for_another_nor_for_us(external_issuer: IssuerEnvironment) -> None:
    other = Issuer(external_issuer.clock.now, "https://other.example")
    external_issuer.others.append(other)
    other.publish(published(key(kid="two")))
    await external_issuer.user(ANN)
    await external_issuer.trust()
    await external_issuer.trust(SECOND, issuer=other.url)
    for kid in ("one", "two", None):
        claims = other.claims(ANN)
        assert (
            await external_issuer.rejection(signed({"alg": "RS256", "kid": kid}, claims, key()))
            == "token validation failed"
        )
    ours = external_issuer.issuer.claims(ANN, iss=external_issuer.settings.issuer, typ="fed", jti="x", sid="y", uid="z")
    for kid in ("one", (await external_issuer.tokens.keys.current()).kid):
        header = {"alg": "RS256", "kid": kid, "typ": "at+jwt"}
        assert await external_issuer.rejection(signed(header, ours, key())) == "token validation failed"


async def test_what_our_key_signed_is_no_external_token(external_issuer: IssuerEnvironment) -> None:
    await external_issuer.user(ANN)
    await external_issuer.trust(signing_algorithms=("ES512",))
    ours = await external_issuer.tokens.keys.current()
    token = signed({"alg": "ES512", "kid": ours.kid}, external_issuer.issuer.claims(ANN), ours.key)
    assert await external_issuer.rejection(token) == "token validation failed"


async def test_a_passport_is_no_bearer_token(external_issuer: IssuerEnvironment) -> None:
    await external_issuer.user(ANN)
    await external_issuer.trust()
    now = int(external_issuer.clock.now().timestamp())
    claims = PassportClaims(
        iss=PASSPORT_ISSUER,
        sub=ANN,
        iat=now,
        nbf=now,
        exp=now + 60,
        jti="x",
        acctype="user",
        source=FIRST,
        src_iss=ELSEWHERE,
        org_ids=(),
        typ="passport",
    )
    passport = await external_issuer.tokens.tokens.sign(claims, PASSPORT)
    assert await external_issuer.rejection(passport.reveal()) == "token validation failed"
    assert external_issuer.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 0
