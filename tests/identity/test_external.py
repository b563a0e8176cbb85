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
from tests.identity.external_issuer import (
    AUDIENCE,
    CLAIMS,
    ELSEWHERE,
    FIRST,
    GROUPS,
    SECOND,
    Issuer,
    Lobby,
    in_the_lobby,
    key,
    published,
    signed,
)
from tests.identity.test_rights_roles import EXPECTED

READER = EXPECTED["reader"].organization
EVERYTHING = EXPECTED["platform-reader"].everywhere
NOBODY = "user identity not found or inactive"
ANN = "ann@example.com"


async def with_ann(lobby: Lobby, **trust: Any) -> str:
    """Make Ann a reader of an organization, trust the issuer, and return the organization."""
    acme = await lobby.organization()
    ann = await lobby.user(ANN, acme)
    await lobby.group(acme, "reader", users=[ann])
    await lobby.trust(**trust)
    return acme


def test_a_token_is_the_user_with_the_rights_it_has_here() -> None:
    async def scenario(lobby: Lobby) -> None:
        acme = await with_ann(lobby)
        principal = await lobby.let_in(lobby.issuer.token(ANN))
        assert (principal.subject, principal.type, principal.organizations) == (ANN, "user", (acme,))
        assert principal.access.organizations[acme].permissions == READER
        assert (principal.issuer, principal.vouched_by) == (ELSEWHERE, None)
        bearer = await lobby.tokens.bearers.identify(lobby.issuer.token(ANN))
        assert (bearer.issuer, bearer.source, bearer.claims) == (ELSEWHERE, FIRST, None)

    in_the_lobby(scenario)


def test_where_somebody_is_a_member_is_not_the_issuers_to_say() -> None:
    async def scenario(lobby: Lobby) -> None:
        acme = await with_ann(lobby, require_authz_claim=True)
        other = await lobby.organization("other")
        said = {f"{CLAIMS}/authz": {"acctype": "user", "orgIds": [other]}}
        assert (await lobby.let_in(lobby.issuer.token(ANN, **said))).organizations == (acme,)

    in_the_lobby(scenario)


@pytest.mark.parametrize("email", ["ANN@Example.COM", "  ann@example.com ", "Ann@example.com"])
def test_an_address_is_the_same_however_it_is_written(email: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        await with_ann(lobby)
        assert (await lobby.let_in(lobby.issuer.token(email))).subject == ANN

    in_the_lobby(scenario)


def test_who_is_not_known_here_is_refused_or_let_in_with_nothing() -> None:
    async def scenario(lobby: Lobby) -> None:
        provider = await lobby.trust()
        token = lobby.issuer.token("Eve@Example.com")
        assert await lobby.refusal(token) == NOBODY
        trust = BearerTrust(audience=AUDIENCE, allow_external_identity=True)
        await lobby.store.update(replace(provider, spec=replace(provider.spec, bearer_trust=trust)))
        principal = await lobby.let_in(token)
        assert (principal.subject, principal.type) == ("eve@example.com", "user")
        assert (principal.access, principal.organizations) == (AccessList(), ())

    in_the_lobby(scenario)


@pytest.mark.parametrize("state", ["suspended", "pending"])
@pytest.mark.parametrize("subject", [ANN, "Ann@Example.com"])
def test_who_is_not_active_is_refused_even_where_strangers_are_let_in(state: UserState, subject: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.trust(allow_external_identity=True)
        await lobby.user(subject, state=state)
        for email in (ANN, "Ann@Example.com", "ANN@EXAMPLE.COM"):
            assert await lobby.refusal(lobby.issuer.token(email)) == NOBODY
            with pytest.raises(Unauthenticated, match=NOBODY):
                await lobby.external(lobby.issuer.token(email))

    in_the_lobby(scenario)


def test_who_is_suspended_or_removed_is_out_at_once() -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.trust()
        ann, bob = await lobby.user(ANN), await lobby.user("bob@example.com")
        tokens = [lobby.issuer.token(ANN), lobby.issuer.token("bob@example.com")]
        for token in tokens:
            await lobby.let_in(token)
        await lobby.suspend(ann)
        await lobby.remove(User, bob.name)
        assert [await lobby.refusal(token) for token in tokens] == [NOBODY, NOBODY]

    in_the_lobby(scenario)


def test_an_issuer_that_names_an_administrator_of_ours_has_made_nobody_one() -> None:
    async def scenario(lobby: Lobby) -> None:
        acme = await with_ann(lobby, allow_external_identity=True)
        assert (await lobby.let_in((await lobby.log_in(await lobby.user("root@example.com")))[0])).access.everywhere
        principal = await lobby.let_in(lobby.issuer.token(ANN))
        assert not principal.access.everywhere
        assert principal.access.organizations[acme].permissions == READER
        for email in ("root@example.com", "boss@example.com", "looker@example.com"):
            assert (await lobby.let_in(lobby.issuer.token(email))).access == AccessList()

    in_the_lobby(
        scenario,
        platform_administrators=(ANN, "root@example.com", "boss@example.com"),
        role_bindings=(RoleBinding(subject="looker@example.com", roles=("platform-reader",)),),
    )


def test_what_is_bound_to_an_issuers_user_is_not_ours_to_have_nor_another_issuers() -> None:
    async def scenario(lobby: Lobby) -> None:
        other = Issuer(lobby.clock.now, "https://other.example")
        lobby.others.append(other)
        await lobby.trust(allow_external_identity=True)
        await lobby.trust(SECOND, issuer=other.url, allow_external_identity=True)
        assert (await lobby.let_in(lobby.issuer.token(ANN))).access == AccessList(everywhere=EVERYTHING)
        assert (await lobby.let_in(other.token(ANN))).access == AccessList()
        token, _ = await lobby.log_in(await lobby.user(ANN))
        assert (await lobby.let_in(token)).access == AccessList()
        assert (await lobby.let_in(lobby.issuer.token(ANN))).access == AccessList(everywhere=EVERYTHING)

    in_the_lobby(scenario, role_bindings=(RoleBinding(issuer=ELSEWHERE, subject=ANN, roles=("platform-reader",)),))


def test_nobody_is_everybody() -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.trust(allow_external_identity=True, skip_email_verification=True)
        for email in ("*", "", " ", "ann", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\u0000", f"{'a' * 65}@b"):
            assert "does not say whose it is" in await lobby.refusal(lobby.issuer.token(email)), email
        anybody = await lobby.let_in(lobby.issuer.token("any@example.com"))
        assert {each.verb for each in anybody.access.everywhere} == {"read"}

    everybody = RoleBinding(issuer=ELSEWHERE, subject="*", roles=("platform-administrator",))
    in_the_lobby(scenario, role_bindings=(everybody,))


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
def test_groups_are_read_as_they_come_and_compared_letter_by_letter(named: Any, is_in: bool) -> None:  # noqa: FBT001  a case
    async def scenario(lobby: Lobby) -> None:
        await with_ann(lobby, groups_claim=GROUPS)
        principal = await lobby.let_in(lobby.issuer.token(ANN, **{GROUPS: named}))
        assert principal.access.everywhere == (EVERYTHING if is_in else frozenset())

    in_the_lobby(scenario, group_bindings=(OPS,))


OPS = GroupBinding(issuer=ELSEWHERE, group="ops", roles=("platform-reader",))


@pytest.mark.parametrize("claim", ["", "groups"])
def test_groups_count_only_from_a_claim_that_is_a_url(claim: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        await with_ann(lobby, groups_claim=claim)
        said = {GROUPS: ["ops"], "groups": ["ops"], "": ["ops"]}
        assert not (await lobby.let_in(lobby.issuer.token(ANN, **said))).access.everywhere

    in_the_lobby(scenario, group_bindings=(OPS,))


def test_groups_of_one_issuer_are_none_of_another() -> None:
    async def scenario(lobby: Lobby) -> None:
        other = Issuer(lobby.clock.now, "https://other.example")
        lobby.others.append(other)
        await lobby.trust(allow_external_identity=True, groups_claim=GROUPS)
        await lobby.trust(SECOND, issuer=other.url, allow_external_identity=True, groups_claim=GROUPS)
        assert (await lobby.let_in(lobby.issuer.token(ANN, **{GROUPS: ["ops"]}))).access.everywhere
        assert not (await lobby.let_in(other.token(ANN, **{GROUPS: ["ops"]}))).access.everywhere

    in_the_lobby(scenario, group_bindings=(OPS,))


def test_groups_count_for_the_bearer_alone_and_not_in_a_passport() -> None:
    async def scenario(lobby: Lobby) -> None:
        acme = await with_ann(lobby, groups_claim=GROUPS)
        bearer = await lobby.tokens.bearers.identify(lobby.issuer.token(ANN, **{GROUPS: ["ops"]}))
        assert bearer.groups == ("ops",)
        standing = await lobby.rights.of_bearer(bearer, with_groups=False)
        assert not standing.access.everywhere
        assert standing.access.organizations[acme].permissions == READER

    in_the_lobby(scenario, group_bindings=(OPS,))


def test_a_provider_of_an_organization_is_never_believed() -> None:
    async def scenario(lobby: Lobby) -> None:
        acme = await lobby.organization()
        await lobby.user(ANN, acme)
        await lobby.trust(organization=acme)
        assert await lobby.refusal(lobby.issuer.token(ANN)) == "token validation failed"
        assert lobby.issuer.asked == []
        assert lobby.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 1

    in_the_lobby(scenario)


def test_a_provider_without_trust_or_on_its_way_out_is_not_believed() -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.user(ANN)
        provider = await lobby.trust()
        token = lobby.issuer.token(ANN)
        await lobby.let_in(token)
        kept = replace(provider, metadata=replace(provider.metadata, finalizers=("example.com/kept",)))
        marked = await lobby.store.update(kept)
        await lobby.store.delete(OAuth2Provider, marked.name, uid=marked.uid)
        assert await lobby.refusal(token) == "token validation failed"
        other = await lobby.trust(SECOND)
        await lobby.let_in(token)
        await lobby.store.update(replace(other, spec=replace(other.spec, bearer_trust=None)))
        assert await lobby.refusal(token) == "token validation failed"

    in_the_lobby(scenario)


def test_of_two_providers_for_one_issuer_the_first_by_name_counts() -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.user(ANN)
        await lobby.trust(SECOND, audience="second")
        first = await lobby.trust(FIRST, audience="first")
        assert (await lobby.let_in(lobby.issuer.token(ANN, aud="first"))).subject == ANN
        assert await lobby.refusal(lobby.issuer.token(ANN, aud="second")) == "token is for another audience"
        await lobby.remove(OAuth2Provider, first.name)
        assert (await lobby.let_in(lobby.issuer.token(ANN, aud="second"))).subject == ANN

    in_the_lobby(scenario)


@pytest.mark.parametrize("url", [f"{ELSEWHERE}/", ELSEWHERE.upper(), f"{ELSEWHERE}:443", f" {ELSEWHERE}", ""])
def test_an_issuer_is_compared_letter_by_letter(url: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.user(ANN)
        await lobby.trust()
        assert await lobby.refusal(lobby.issuer.token(ANN, iss=url)) == "token validation failed"
        assert lobby.issuer.asked == []

    in_the_lobby(scenario)


OUR_URL = "https://remuda.test/identity"


@pytest.mark.parametrize("ours", [OUR_URL, f"{OUR_URL}/", "uni", PASSPORT_ISSUER, ""])
def test_we_are_no_external_issuer_whatever_a_provider_says(ours: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        lobby.issuer.url = ours
        await lobby.user(ANN)
        await lobby.trust(issuer=ours)
        assert await lobby.refusal(lobby.issuer.token(ANN)) == "token validation failed"
        token, _ = await lobby.log_in(await lobby.user("bob@example.com"))
        assert (await lobby.let_in(token)).subject == "bob@example.com"
        assert lobby.issuer.asked == []

    in_the_lobby(scenario, issuer=OUR_URL, platform_administrators=(ANN,))


def test_no_issuer_signs_for_another_nor_for_us() -> None:
    async def scenario(lobby: Lobby) -> None:
        other = Issuer(lobby.clock.now, "https://other.example")
        lobby.others.append(other)
        other.publish(published(key(kid="two")))
        await lobby.user(ANN)
        await lobby.trust()
        await lobby.trust(SECOND, issuer=other.url)
        for kid in ("one", "two", None):
            claims = other.claims(ANN)
            assert await lobby.refusal(signed({"alg": "RS256", "kid": kid}, claims, key())) == "token validation failed"
        ours = lobby.issuer.claims(ANN, iss=lobby.settings.issuer, typ="fed", jti="x", sid="y", uid="z")
        for kid in ("one", (await lobby.tokens.keys.current()).kid):
            header = {"alg": "RS256", "kid": kid, "typ": "at+jwt"}
            assert await lobby.refusal(signed(header, ours, key())) == "token validation failed"

    in_the_lobby(scenario)


def test_what_our_key_signed_is_no_external_token() -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.user(ANN)
        await lobby.trust(signing_algorithms=("ES512",))
        ours = await lobby.tokens.keys.current()
        token = signed({"alg": "ES512", "kid": ours.kid}, lobby.issuer.claims(ANN), ours.key)
        assert await lobby.refusal(token) == "token validation failed"

    in_the_lobby(scenario)


def test_a_passport_is_no_bearer_token() -> None:
    async def scenario(lobby: Lobby) -> None:
        await lobby.user(ANN)
        await lobby.trust()
        now = int(lobby.clock.now().timestamp())
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
        passport = await lobby.tokens.tokens.sign(claims, PASSPORT)
        assert await lobby.refusal(passport.reveal()) == "token validation failed"
        assert lobby.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 0

    in_the_lobby(scenario)
