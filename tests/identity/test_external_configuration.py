"""Providers of the configuration: in the store as they are configured, and gone when they are not."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.identity.federation.providers import (
    CONFIGURED,
    LoginProviders,
    check_providers,
    provider_id,
    seed_providers,
)
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import Organization, OrganizationSpec
from remuda.identity.settings import IdentitySettings, PlatformProvider
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME, ORGANIZATION
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.identity.resource_api import ORG, registry
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

GOOGLE = PlatformProvider(
    issuer="https://accounts.google.com", type="google", client_id="us", client_secret=Secret("canary")
)
STAFF = PlatformProvider(
    issuer="https://login.example", bearer_trust=BearerTrust(audience="us", groups_claim="https://example.com/groups")
)


def on_a_store(scenario: Callable[[SqliteStore], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        store = open_simulated(world, registry())
        try:
            await scenario(store)
        finally:
            await store.close()

    simulate(run, [5])


store = provided_by(on_a_store)


async def stored(store: SqliteStore) -> dict[str, OAuth2Provider]:
    return {each.metadata.labels[NAME]: each for each in (await store.list(OAuth2Provider)).items}


async def test_what_is_configured_is_stored(store: SqliteStore) -> None:
    await seed_providers(store, {"google": GOOGLE, "staff": STAFF})
    found = await stored(store)
    assert found["google"].spec == OAuth2ProviderSpec(
        issuer="https://accounts.google.com", type="google", client_id="us", client_secret=Secret("canary")
    )
    assert found["staff"].spec.bearer_trust == STAFF.bearer_trust
    assert ORGANIZATION not in found["staff"].metadata.labels
    assert found["google"].name == provider_id("google") == "fbdefa29-50f4-4882-8295-b1285d4fa9de"


async def test_starting_again_with_the_same_writes_nothing(store: SqliteStore) -> None:
    await seed_providers(store, {"google": GOOGLE, "staff": STAFF})
    before = await stored(store)
    await seed_providers(store, {"staff": STAFF, "google": GOOGLE})
    assert await stored(store) == before


async def test_what_changed_is_changed_and_what_is_left_out_is_gone(store: SqliteStore) -> None:
    await seed_providers(store, {"google": GOOGLE, "staff": STAFF})
    before = await stored(store)
    moved = PlatformProvider(issuer="https://new.example", client_id="us")
    await seed_providers(store, {"staff": moved})
    after = await stored(store)
    assert after.keys() == {"staff"}
    assert after["staff"].uid == before["staff"].uid
    assert after["staff"].spec == OAuth2ProviderSpec(issuer="https://new.example", client_id="us")
    await seed_providers(store, {})
    assert await stored(store) == {}


async def test_what_the_configuration_did_not_make_stays(store: SqliteStore) -> None:
    for name, labels, annotations in (
        ("d1111111-0000-4000-8000-000000000001", {NAME: "by-hand"}, {}),
        ("d1111111-0000-4000-8000-000000000002", {NAME: "theirs", ORGANIZATION: ORG}, {CONFIGURED: "yes"}),
    ):
        await store.create(OAuth2Provider(metadata=Metadata(name=name, labels=labels, annotations=annotations)))
    before = await stored(store)
    await seed_providers(store, {"google": GOOGLE})
    await seed_providers(store, {})
    assert await stored(store) == before


async def test_a_provider_of_the_same_name_is_the_configurations_from_then_on(store: SqliteStore) -> None:
    metadata = Metadata(name=provider_id("google"), labels={NAME: "google", "example.com/of": "chart"})
    await store.create(OAuth2Provider(metadata=metadata, spec=OAuth2ProviderSpec(issuer="https://old.example")))
    await seed_providers(store, {"google": GOOGLE})
    (found,) = (await stored(store)).values()
    assert found.spec.issuer == GOOGLE.issuer
    assert found.metadata.labels["example.com/of"] == "chart"
    await seed_providers(store, {})
    assert await stored(store) == {}


async def test_a_provider_that_an_organization_names_is_of_no_use_from_then_on_and_goes_with_that(
    store: SqliteStore,
) -> None:
    providers = LoginProviders(store=store, settings=IdentitySettings())
    await seed_providers(store, {"google": GOOGLE})
    spec = OrganizationSpec(domain="example.com", provider_scope="global", provider_id=provider_id("google"))
    acme = await store.create(Organization(metadata=Metadata(name=ORG), spec=spec))
    await seed_providers(store, {})
    assert (await stored(store))["google"].is_deleting
    assert await providers.platform() == []
    await seed_providers(store, {"google": GOOGLE})
    assert (await stored(store))["google"].is_deleting
    await store.update(replace(acme, spec=OrganizationSpec()))
    assert await stored(store) == {}
    await seed_providers(store, {"google": GOOGLE})
    assert [each.spec.type for each in await providers.platform()] == ["google"]


async def test_users_can_log_in_where_we_are_a_client(store: SqliteStore) -> None:
    microsoft = PlatformProvider(issuer="https://login.microsoftonline.com/t/v2.0", type="microsoft", client_id="x")
    await seed_providers(store, {"google": GOOGLE, "staff": STAFF, "microsoft": microsoft})
    listed = await LoginProviders(store=store, settings=IdentitySettings()).platform()
    assert {each.metadata.labels[NAME] for each in listed} == {"google", "microsoft"}


def trusting(**trust: Any) -> PlatformProvider:
    return PlatformProvider(issuer="https://login.example", bearer_trust=BearerTrust(**{"audience": "us"} | trust))


@pytest.mark.parametrize(
    ("providers", "told"),
    [
        ({"of staff": STAFF}, r"^providers\.of staff is not a valid name"),
        ({"": STAFF}, r"^providers\. is not a valid name"),
        ({"x": PlatformProvider(issuer="https://login.example")}, r"^providers\.x is not usable: add a client_id"),
        ({"x": trusting(audience="")}, r"^providers\.x\.bearer_trust\.audience is empty: "),
        (
            {"x": trusting(signing_algorithms=("RS256", "HS256"))},
            r"\.signing_algorithms has an unsupported .*: choose from RS256",
        ),
        (
            {"x": trusting(signing_algorithms=("none",))},
            r"^providers\.x\.bearer_trust\.signing_algorithms has an ",
        ),
        ({"x": trusting(groups_claim="groups")}, r"^providers\.x\.bearer_trust\.groups_claim is not a URL: "),
        ({"x": STAFF, "y": trusting()}, r"^providers\.y\.bearer_trust trusts the same issuer as x: "),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(providers: dict[str, PlatformProvider], told: str) -> None:
    with pytest.raises(Invalid, match=told):
        check_providers(IdentitySettings(providers=providers))


@pytest.mark.parametrize("issuer", ["https://remuda.test/identity", "https://remuda.test/identity/", "uni", ""])
def test_we_are_no_provider_of_our_own(issuer: str) -> None:
    settings = IdentitySettings(
        issuer="https://remuda.test/identity", providers={"x": PlatformProvider(issuer=issuer, client_id="us")}
    )
    with pytest.raises(Invalid, match=r"^providers\.x\.issuer is our own issuer: "):
        check_providers(settings)


@pytest.mark.parametrize("issuer", ["http://login.example", "login.example", "https://a@b", "https://a?b", "ftp://a"])
def test_an_issuer_is_a_url_that_can_be_trusted(issuer: str) -> None:
    provider = PlatformProvider(issuer=issuer, client_id="us")
    with pytest.raises(Invalid, match=r"^providers\.x\.issuer is not a URL that can be trusted: "):
        check_providers(IdentitySettings(providers={"x": provider}))


def test_what_can_be_is_not_refused() -> None:
    both = PlatformProvider(issuer="https://login.example", client_id="us")
    check_providers(IdentitySettings(providers={"google": GOOGLE, "staff": STAFF, "again": both}))
