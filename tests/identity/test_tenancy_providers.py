"""OAuth2 providers over HTTP: who sees which, what may be asked of them, and that no secret comes out."""

import pytest

from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.kernel.secrets import Secret
from tests.kit.identity.resource_api import member
from tests.kit.identity.tenancy import (
    ABSENT,
    ORGANIZATIONS,
    PLATFORM,
    PLATFORM_PROVIDER,
    TenancyApi,
    administrator,
    forbidden,
    ids,
    made,
    make_organization,
    make_platform_provider,
    provider,
    rejection,
    stranger,
    with_domain,
)


def providers_of(home: str) -> str:
    return f"{ORGANIZATIONS}/{home}/oauth2providers"


async def secret_of(tenancy: TenancyApi, name: str) -> Secret | None:
    return (await tenancy.store.get(OAuth2Provider, name)).spec.client_secret


async def test_everybody_who_is_somebody_reads_the_providers_of_the_platform_without_their_secrets(
    tenancy: TenancyApi,
) -> None:
    await make_platform_provider(tenancy.store)
    await made(tenancy, providers_of(await make_organization(tenancy)), provider())
    reply = await tenancy.ask(stranger()).get("/api/v1/oauth2providers")
    (there,) = reply.json
    assert (there["metadata"]["id"], there["metadata"]["name"]) == (PLATFORM_PROVIDER, "everybody")
    assert there["metadata"]["organizationId"] == ""
    assert there["spec"] == {"issuer": "https://accounts.example.com", "clientID": "all", "type": "google"}
    assert b"canary" not in reply.body
    assert (await tenancy.ask(None).get("/api/v1/oauth2providers")).status == 401


async def test_a_provider_of_an_organization_is_made_read_changed_and_removed(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    boss, path = tenancy.ask(administrator(home)), providers_of(home)
    reply = await boss.post(path, provider(type="microsoft"))
    assert reply.status == 201
    assert reply.json["spec"] == {
        "issuer": "https://login.acme.example/",
        "clientID": "us",
        "type": "microsoft",
    }
    metadata = reply.json["metadata"]
    assert (metadata["organizationId"], metadata["provisioningStatus"]) == (home, "provisioned")
    listed = await boss.get(path)
    assert listed.json == [reply.json]
    assert b"canary" not in reply.body + listed.body

    one = f"{path}/{metadata['id']}"
    changed = await boss.put(one, provider(clientID="others"))
    assert (changed.status, changed.body) == (200, b"")
    (there,) = (await boss.get(path)).json
    assert there["spec"] == {"issuer": "https://login.acme.example/", "clientID": "others"}
    gone = await boss.delete(one)
    assert (gone.status, gone.body) == (200, b"")
    assert ids(await boss.get(path)) == []
    assert (await boss.delete(one)).status == 404
    assert (await boss.put(one, provider())).status == 404


async def test_a_secret_stays_until_another_comes_and_goes_with_an_empty_one(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    name = await made(tenancy, providers_of(home), provider())
    boss, path = tenancy.ask(administrator(home)), f"{providers_of(home)}/{name}"
    assert await secret_of(tenancy, name) == Secret("canary-secret")
    silent = provider()
    del silent["spec"]["clientSecret"]
    assert (await boss.put(path, silent)).status == 200
    assert await secret_of(tenancy, name) == Secret("canary-secret")
    assert (await boss.put(path, provider(clientSecret="canary-next"))).status == 200
    assert await secret_of(tenancy, name) == Secret("canary-next")
    assert (await boss.put(path, provider(clientSecret=""))).status == 200
    assert await secret_of(tenancy, name) is None


async def test_a_secret_goes_to_no_other_issuer(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    name = await made(tenancy, providers_of(home), provider())
    elsewhere = provider(issuer="https://elsewhere.example/")
    del elsewhere["spec"]["clientSecret"]
    path = f"{providers_of(home)}/{name}"
    assert (await tenancy.ask(administrator(home)).put(path, elsewhere)).status == 200
    assert await secret_of(tenancy, name) is None


async def test_a_secret_is_in_no_byte_of_the_disk(tenancy: TenancyApi) -> None:
    await made(tenancy, providers_of(await make_organization(tenancy)), provider())
    files = [path for path in tenancy.world.disk.directory.iterdir() if path.is_file()]
    assert files
    assert not [path for path in files if b"canary-secret" in path.read_bytes()]


@pytest.mark.parametrize(
    "issuer",
    [
        "http://login.acme.example/",
        "http://127.0.0.1.acme.example/",
        "ftp://login.acme.example/",
        "https://user@login.acme.example/",
        "https://login.acme.example/?tenant=1",
        "https://login.acme.example/#top",
        "https://",
        "https://login acme",
        "https://login.acme.example:port/",
        "login.acme.example",
        "javascript:alert(1)",
    ],
)
async def test_an_issuer_that_cannot_be_trusted_is_refused(tenancy: TenancyApi, issuer: str) -> None:
    home = await make_organization(tenancy)
    boss = tenancy.ask(administrator(home))
    status, why = rejection(await boss.post(providers_of(home), provider(issuer=issuer)))
    assert status == 422
    assert why.startswith("spec.issuer ")
    assert ids(await boss.get(providers_of(home))) == []


@pytest.mark.parametrize(
    "issuer",
    [
        "https://login.acme.example",
        "https://[2001:db8::1]:8443/a",
        "http://127.0.0.1:9000",
        "http://localhost:1/a",
        "http://[::1]",
    ],
)
async def test_an_issuer_is_asked_over_https_or_on_this_machine(tenancy: TenancyApi, issuer: str) -> None:
    home = await make_organization(tenancy)
    assert await made(tenancy, providers_of(home), provider(issuer=issuer), administrator(home))


async def test_providers_take_permissions_in_their_organization(tenancy: TenancyApi) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    foreign = await made(tenancy, providers_of(other), provider())
    boss = tenancy.ask(administrator(home))
    plain = tenancy.ask(member("plain@example.com", home))
    path = providers_of(home)
    own = f"{path}/{await made(tenancy, path, provider())}"
    assert rejection(await plain.get(path)) == forbidden("read", "oauth2providers")
    assert (await plain.post(path, provider())).status == 403
    assert (await plain.put(own, provider())).status == 403
    assert (await plain.delete(own)).status == 403
    for name in (other, ABSENT):
        assert (await boss.get(providers_of(name))).status == 403
        assert (await boss.post(providers_of(name), provider())).status == 403
        assert (await boss.delete(f"{providers_of(name)}/{foreign}")).status == 403
    assert (await boss.put(f"{path}/{foreign}", provider())).status == 404
    assert (await boss.delete(f"{path}/{foreign}")).status == 404
    assert (await tenancy.ask(PLATFORM).get(providers_of(ABSENT))).status == 404
    assert (await tenancy.ask(PLATFORM).post(providers_of(ABSENT), provider())).status == 404
    assert (await tenancy.ask(None).get(path)).status == 401


async def test_a_provider_of_the_platform_is_nobodys_to_change(tenancy: TenancyApi) -> None:
    await make_platform_provider(tenancy.store)
    home = await make_organization(tenancy)
    path = f"{providers_of(home)}/{PLATFORM_PROVIDER}"
    assert (await tenancy.ask(PLATFORM).put(path, provider())).status == 404
    assert (await tenancy.ask(PLATFORM).delete(path)).status == 404


async def test_a_provider_that_a_domain_needs_goes_when_the_domain_does(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    own = await made(tenancy, providers_of(home), provider())
    boss, path = tenancy.ask(administrator(home)), f"{ORGANIZATIONS}/{home}"
    wanted = with_domain(providerScope="organization", providerID=own)
    assert (await boss.put(path, wanted)).status == 200
    assert (await boss.delete(f"{providers_of(home)}/{own}")).status == 200
    (there,) = (await boss.get(providers_of(home))).json
    assert there["metadata"]["provisioningStatus"] == "deprovisioning"
    assert (await boss.put(path, {"metadata": {"name": "acme"}, "spec": {"organizationType": "adhoc"}})).status == 200
    assert ids(await boss.get(providers_of(home))) == []
    assert (await boss.put(path, wanted)).status == 422


async def test_a_write_to_a_state_that_nobody_has_seen_is_refused(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    boss = tenancy.ask(administrator(home))
    made_now = await boss.post(providers_of(home), provider())
    path, seen = f"{providers_of(home)}/{made_now.json['metadata']['id']}", made_now.headers["etag"]
    assert (await boss.put(path, provider(clientID="others"), if_match=seen)).status == 200
    assert (await boss.put(path, provider(), if_match=seen)).status == 412
    assert (await boss.delete(path, if_match=seen)).status == 412


async def test_the_same_request_under_its_key_makes_one_provider(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    boss = tenancy.ask(administrator(home))
    replies = [await boss.post(providers_of(home), provider(), idempotency_key="once") for _ in range(2)]
    assert replies[0].json == replies[1].json
    assert len(ids(await boss.get(providers_of(home)))) == 1
