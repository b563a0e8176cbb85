import base64
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.access.principal import AccessList, Permission, Principal
from remuda.http.api import ApiSettings
from remuda.http.authentication import PrincipalClaim, RequestCredentials, acting_for, read_credentials
from remuda.http.proxies import CertificateProxies, ForwardingProxies
from remuda.kernel.errors import Malformed, RemudaError, Unauthenticated
from tests.kit.certificates import authority, certificate_proxies
from tests.kit.clocks import HandClock
from tests.kit.sample_api.pipeline import HORSE, HORSES, running

NETWORKS = ("10.0.0.0/8", "fd00::1/128")
PROXIES, CLOCK = certificate_proxies(*NETWORKS), HandClock()
PEM = authority().issue("compute").pem
CLAIM = {"actor": "anna", "type": "user", "organizationId": "o", "projectId": "p", "organizationIds": ["o", "q"]}


def encoded(claim: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(claim)).decode().rstrip("=")


SERVICE = {"ssl-client-cert": quote(PEM), "ssl-client-verify": "SUCCESS", "x-principal": encoded(CLAIM)}


def read(*headers: tuple[str, str], peer: str | None = "10.1.2.3", **more: str) -> RequestCredentials:
    named = [(name.replace("_", "-"), value) for name, value in more.items()]
    sent = [(name.encode(), value.encode("latin-1")) for name, value in (*headers, *named)]
    return read_credentials(dict(sent), all_headers=sent, peer=peer, proxies=PROXIES, clock=CLOCK)


@pytest.mark.parametrize("authorization", ["Bearer abc.DEF-1~+/=", "bearer abc.DEF-1~+/=", "BEARER  abc.DEF-1~+/="])
def test_a_bearer_token_is_read(authorization: str) -> None:
    assert read(authorization=authorization) == RequestCredentials(token="abc.DEF-1~+/=")


@pytest.mark.parametrize(
    ("authorization", "told"),
    [
        ("Basic YTpi", "authorization scheme not allowed"),
        ("Bearer", "authorization header malformed"),
        ("abc", "authorization header malformed"),
        ("", "authorization header malformed"),
        ("Bearer a b", "authorization header malformed"),
        ("Bearer a\xe9", "authorization header malformed"),
    ],
)
def test_another_authorization_is_refused(authorization: str, told: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        read(authorization=authorization)
    assert str(caught.value) == told


def test_no_credentials_are_missing() -> None:
    with pytest.raises(Unauthenticated, match="authorization header missing"):
        read(accept="*/*")


def test_a_token_is_not_shown() -> None:
    assert "abc" not in repr(read(authorization="Bearer abc"))
    assert PEM.split()[2] not in repr(read(*SERVICE.items()))


def test_a_service_has_a_certificate_and_says_for_whom_it_acts() -> None:
    claim = PrincipalClaim(actor="anna", type="user", organization="o", project="p", organizations=("o", "q"))
    assert read(*SERVICE.items()) == RequestCredentials(certificate=PEM, claim=claim)
    assert read(*SERVICE.items(), x_impersonate="true").impersonate
    assert read(*SERVICE.items(), authorization="Bearer abc").token == "abc"
    assert read(*SERVICE.items(), peer="fd00::1").certificate == PEM


@pytest.mark.parametrize("peer", ["11.1.2.3", "::ffff:10.1.2.3", "nonsense", None])
def test_certificates_from_anybody_else_do_not_exist(peer: str | None) -> None:
    with pytest.raises(Unauthenticated, match="authorization header missing"):
        read(*SERVICE.items(), peer=peer)
    theirs = {**SERVICE, "x-principal": "nonsense", "x-impersonate": "true", "authorization": "Bearer abc"}
    found = read(*theirs.items(), peer=peer)
    assert (found.token, found.certificate, found.claim, found.impersonate) == ("abc", None, None, False)
    assert found.fault.startswith("X-Principal is not valid")


def test_beside_a_token_a_claim_is_read_and_what_is_wrong_with_it_is_kept_for_services() -> None:
    claim = PrincipalClaim(actor="anna", type="user", organization="o", project="p", organizations=("o", "q"))
    said = {"authorization": "Bearer abc", "x-principal": encoded(CLAIM)}
    assert read(*said.items()) == RequestCredentials(token="abc", claim=claim)
    assert read(*said.items(), x_impersonate="TRUE") == RequestCredentials(token="abc", claim=claim, impersonate=True)
    for nonsense in ("***", encoded([1]), encoded({"type": "king"}), "a.b.c", ""):
        for flag in ("true", "false"):
            found = read(*{**said, "x-principal": nonsense}.items(), x_impersonate=flag)
            assert found == RequestCredentials(token="abc", fault=found.fault)
            assert found.fault.startswith("X-Principal is not valid: send a JSON object as unpadded base64url;")
    longer = read(*{**said, "x-principal": "a" * 8193}.items())
    assert longer.fault == "X-Principal is too long: send at most 8192 bytes"
    assert read(authorization="Bearer abc", x_impersonate="true") == RequestCredentials(token="abc", impersonate=True)


@pytest.mark.parametrize("flag", ["1", "yes", "true,true", "", "TRUE.", "wahr\xe9"])
def test_a_request_to_impersonate_that_is_neither_true_nor_false_is_a_services_fault(flag: str) -> None:
    told = "X-Impersonate is neither true nor false: send true to ask for what both may do, or leave it out"
    with pytest.raises(Malformed) as caught:
        read(*SERVICE.items(), x_impersonate=flag)
    assert caught.value.message == told
    for headers in ({}, {"x-principal": encoded(CLAIM)}):
        found = read(*headers.items(), authorization="Bearer abc", x_impersonate=flag)
        assert found == RequestCredentials(token="abc", fault=told)


@pytest.mark.parametrize(("flag", "impersonates"), [("true", True), ("True", True), ("false", False), ("FALSE", False)])
def test_a_request_to_impersonate_is_true_or_false_in_any_case(flag: str, *, impersonates: bool) -> None:
    assert read(*SERVICE.items(), x_impersonate=flag).impersonate is impersonates
    found = read(authorization="Bearer abc", x_impersonate=flag)
    assert found == RequestCredentials(token="abc", impersonate=impersonates)


def test_no_proxy_is_trusted_unless_it_is_named() -> None:
    assert "127.0.0.1" not in ForwardingProxies()
    assert "127.0.0.1" not in CertificateProxies()
    with pytest.raises(ValueError, match="need authorities"):
        CertificateProxies(["127.0.0.1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.1.1.1", "192.0.2.7", "192.0.2.7"),
        ("10.1.1.1", "6.6.6.6, 192.0.2.7, 10.2.2.2", "192.0.2.7"),
        ("fd00::1", "2001:db8::1", "2001:db8::1"),
        ("10.1.1.1", "6.6.6.6, nonsense", "10.1.1.1"),
        ("10.1.1.1", "6.6.6.6, nonsense, 10.2.2.2", "10.2.2.2"),
        ("10.1.1.1", "10.2.2.2, 10.3.3.3", "10.2.2.2"),
        ("10.1.1.1", "", "10.1.1.1"),
        ("192.0.2.9", "6.6.6.6", "192.0.2.9"),
    ],
)
def test_the_client_is_the_last_one_that_is_no_proxy_of_ours(peer: str, forwarded: str, client: str) -> None:
    assert ForwardingProxies(NETWORKS).client_of(peer, forwarded.encode()) == client


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ssl-client-verify": "FAILED:x"}, "certificate propagation failure"),
        ({"ssl-client-verify": None}, "certificate propagation failure"),
        ({"ssl-client-cert": "nonsense"}, "certificate propagation failure"),
        ({"x-principal": None}, "X-Principal is missing: a service must name the principal it acts for"),
        ({"x-principal": "***"}, "X-Principal is not valid: send a JSON object as unpadded base64url"),
        ({"x-principal": encoded([1])}, "X-Principal is not valid: send a JSON object as unpadded base64url"),
        ({"x-principal": encoded({"type": "king"})}, "X-Principal is not valid"),
        ({"x-principal": encoded({}), "x-impersonate": "true"}, "X-Impersonate needs an actor"),
    ],
)
def test_a_service_that_makes_no_sense_is_told_so(changes: dict[str, str | None], told: str) -> None:
    headers = {name: value for name, value in {**SERVICE, **changes}.items() if value is not None}
    with pytest.raises(Malformed, match=told):
        read(*headers.items())


def test_a_header_that_counts_must_not_come_twice() -> None:
    for doubled in (("authorization", "Bearer abc"), ("x-principal", encoded({}))):
        with pytest.raises(Unauthenticated, match="authorization header malformed"):
            read(*SERVICE.items(), ("authorization", "Bearer abc"), doubled)
    with pytest.raises(Unauthenticated, match="authorization header malformed"):
        read(("authorization", "Bearer a"), ("authorization", "Bearer b"), peer="1.1.1.1")
    assert read(("accept", "a"), ("accept", "b"), authorization="Bearer abc") == RequestCredentials(token="abc")


@given(st.dictionaries(st.sampled_from(sorted({*SERVICE, "x-impersonate", "authorization"})), st.binary(max_size=60)))
def test_any_headers_are_read_or_refused(headers: dict[str, bytes]) -> None:
    sent = [(name.encode(), value) for name, value in headers.items()]
    status = 200
    try:
        read_credentials(dict(sent), all_headers=sent, peer="10.0.0.1", proxies=PROXIES, clock=CLOCK)
    except RemudaError as error:
        status = error.status
    assert status in {200, 400, 401}


READ, WRITE = Permission("x", "read"), Permission("x", "update")


def test_a_service_acts_with_its_own_permissions_or_with_what_both_have() -> None:
    service = Principal(subject="compute", type="system", access=AccessList(everywhere=frozenset({READ, WRITE})))
    claim = PrincipalClaim(actor="anna", organization="o", project="p", organizations=("o",))
    acting = acting_for(service, claim)
    assert (acting.access, acting.actor_name, acting.service, acting.subject) == (
        service.access,
        "anna",
        "compute",
        "compute",
    )
    assert (acting.organization, acting.project, acting.organizations) == ("o", "p", ("o",))
    impersonating = acting_for(service, claim, impersonated=AccessList(everywhere=frozenset({READ})))
    assert impersonating.access.everywhere == {READ}


async def test_the_pipeline_believes_certificates_from_its_proxies_alone(tmp_path: Path) -> None:
    settings = ApiSettings(certificates=certificate_proxies("127.0.0.1"))
    service = {name.replace("-", "_"): value for name, value in SERVICE.items()}
    async with running(tmp_path, settings=settings) as api:
        assert (await api.client.having(None).get(f"{HORSES}/{HORSE}", **service)).status == 200
        assert [each.certificate for each in api.tokens.seen] == [PEM]
    (tmp_path / "other").mkdir()
    async with running(tmp_path / "other") as api:
        reply = await api.client.having(None).get(f"{HORSES}/{HORSE}", **service)
        assert (reply.status, reply.json["error_description"]) == (401, "authorization header missing")
        assert reply.headers["www-authenticate"].startswith('Bearer error="access_denied"')
        assert api.tokens.seen == []
