"""Headers that claim to be a service's, on a real socket: forged, doubled, misspelt, smuggled."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.kit.certificates import authority, certificate_proxies, self_signed
from tests.kit.identity.environment import ORGANIZATIONS, ROOT
from tests.kit.identity.service_credentials import CI, certificate, principal
from tests.kit.proofs.authorization.identity_socket import REGION, Answer, wired

ACL = "/api/v1/acl"
COMPUTE = "unikorn-compute"
NOBODY = certificate_proxies("192.0.2.0/24")
"""Proxies that none of these requests come from."""


def bearer(token: str) -> str:
    return f"Authorization: Bearer {token}"


def _endpoints(acl: Any) -> set[str]:
    return {each["name"] for each in acl.get("global", ())}


async def test_who_is_no_proxy_of_ours_has_no_certificate(tmp_path: Path) -> None:
    async with wired(tmp_path, NOBODY) as wire:
        answer = await wire.get(ACL, *wire.service().items())
        assert (answer.status, answer.body["error_description"]) == (401, "authorization header missing")
        user = await wire.identity.log_in("ann@example.com")
        plain = await wire.get(ACL, bearer(user))
        for impersonates in (False, True):
            claimed = await wire.get(ACL, bearer(user), *wire.service(impersonates=impersonates).items())
            assert claimed == plain == Answer(200, {})
        twice = await wire.get(ACL, *wire.service().items(), *wire.service(COMPUTE).items())
        assert twice.status == 401


async def test_a_proxy_of_ours_is_believed(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        answer = await wire.get(ACL, *wire.service().items())
        assert _endpoints(answer.body) == {"identity:allocations", "identity:projects", "identity:projects/references"}


@pytest.mark.parametrize("name", ["ssl-client-cert", "ssl-client-verify", "x-principal", "x-impersonate"])
@pytest.mark.parametrize("spelling", [str.lower, str.title, str.upper])
async def test_a_header_that_comes_twice_is_refused_however_it_is_spelt(
    tmp_path: Path, name: str, spelling: Any
) -> None:
    async with wired(tmp_path) as wire:
        headers = wire.service(impersonates=True)
        other = wire.service(COMPUTE, actor="eve@example.com")
        for more in ({name: headers[name]}, {name: other.get(name, "false")}):
            doubled = [*headers.items(), *((spelling(each), value) for each, value in more.items())]
            assert (await wire.get(ACL, *doubled)).status == 401
            assert (await wire.get(ACL, *reversed(doubled))).status == 401


async def test_two_bearers_are_nobody(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        user = await wire.identity.log_in("ann@example.com")
        for one, other in ((wire.identity.root, user), (user, wire.identity.root), (user, user)):
            assert (await wire.get(ACL, bearer(one), bearer(other))).status == 401
            assert (await wire.get(ACL, bearer(one), bearer(other).lower())).status == 401


@pytest.mark.parametrize(
    "spelt",
    ["ssl_client_cert", "Ssl_Client-Cert", "SSL_CLIENT_CERT", "x-ssl-client-cert", "unikorn-client-certificate"],
)
async def test_only_the_header_itself_is_a_certificate(tmp_path: Path, spelt: str) -> None:
    async with wired(tmp_path) as wire:
        headers = wire.service()
        headers[spelt] = headers.pop("ssl-client-cert")
        assert (await wire.get(ACL, *headers.items())).status == 401
        user = await wire.identity.log_in("ann@example.com")
        assert await wire.get(ACL, bearer(user), *headers.items()) == Answer(200, {})
        own = wire.service(COMPUTE)
        plain = await wire.get(ACL, *own.items())
        assert "identity:projects/references" not in _endpoints(plain.body)
        relayed = {**own, spelt: wire.service(REGION)["ssl-client-cert"]}
        assert await wire.get(ACL, *relayed.items()) == plain


async def test_a_certificate_that_does_not_hold_lets_nobody_in(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        good, now = wire.service(), wire.identity.clock.now()
        day = timedelta(days=2)

        def having(pem: str) -> Mapping[str, str]:
            return {**good, "ssl-client-cert": quote(pem, safe="")}

        refused = {
            "unknown": having(certificate("unikorn-nobody", now)),
            "self-signed": having(self_signed(REGION).pem),
            "of another authority": having(authority("imposter").issue(REGION).pem),
            "none": having(""),
            "of an account with a key": having(certificate(CI, now)),
            "expired": having(certificate(REGION, now, ends=-day)),
            "not yet": having(certificate(REGION, now, begins=day, ends=2 * day)),
        }
        malformed = {
            "unverified": {**good, "ssl-client-verify": "FAILED"},
            "not quite": {**good, "ssl-client-verify": "success"},
            "both": {**good, "ssl-client-verify": "FAILED, SUCCESS"},
            "two": {**good, "ssl-client-cert": f"{good['ssl-client-cert']},{good['ssl-client-cert']}"},
            "for nobody": {name: value for name, value in good.items() if name != "x-principal"},
            "for nonsense": {**good, "x-principal": "nonsense!"},
            "as nobody": {**good, "x-principal": principal({}), "x-impersonate": "true"},
            "as a service": {
                **good,
                "x-principal": principal({"actor": COMPUTE, "type": "system"}),
                "x-impersonate": "true",
            },
        }
        for label, headers in refused.items():
            assert (await wire.get(ACL, *headers.items())).status == 401, label
        for label, headers in malformed.items():
            assert (await wire.get(ACL, *headers.items())).status == 400, label


async def test_what_a_user_claims_about_itself_has_no_effect(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        identity = wire.identity
        acme = await identity.organization("acme")
        ann = await identity.member("ann@example.com", acme, "administrator")
        plain = await wire.get(ACL, bearer(ann))
        for claim in (
            principal({"actor": ROOT, "type": "user"}),
            principal({"actor": REGION, "type": "system"}),
            "?!",
            "a.b.c",
            "a" * 9000,
        ):
            for impersonate in ("true", "false", "?!", "true,true"):
                claimed = await wire.get(ACL, bearer(ann), f"X-Principal: {claim}", f"X-Impersonate: {impersonate}")
                assert claimed == plain
        headers = {"x-principal": principal({"actor": ROOT, "type": "user"}), "x-impersonate": "true"}
        body = {"metadata": {"name": "crew"}, "spec": {"roleIDs": [], "serviceAccountIDs": []}}
        made = (await identity.carrying(headers, ann).post(f"{ORGANIZATIONS}/{acme}/groups", body)).json
        assert made["metadata"]["createdBy"] == "ann@example.com"
        (entry,) = [
            each
            for each in (await identity.client(identity.root).get(f"{ORGANIZATIONS}/{acme}/audit")).json
            if each["resource"]["id"] == made["metadata"]["id"]
        ]
        assert ROOT not in msgspec.json.encode(entry).decode()


async def test_a_service_with_a_token_of_its_own_says_for_whom_it_acts_without_any_proxy(tmp_path: Path) -> None:
    async with wired(tmp_path, NOBODY) as wire:
        acme = await wire.identity.organization("acme")
        ann = await wire.identity.member("ann@example.com", acme, "administrator")
        token = await wire.identity.service_token(REGION)
        own = await wire.get(ACL, bearer(token))
        assert "identity:allocations" in _endpoints(own.body)
        claim = f"X-Principal: {principal({'actor': 'ann@example.com', 'type': 'user'})}"
        assert await wire.get(ACL, bearer(token), claim) == own
        less = (await wire.get(ACL, bearer(token), claim, "X-Impersonate: true")).body
        assert _endpoints(less) == set()
        (inside,) = less["organizations"]
        assert inside == {"id": acme, "endpoints": [{"name": "identity:projects", "operations": ["read"]}]}
        assert (await wire.get(ACL, bearer(token), "X-Impersonate: true")).status == 400
        assert (await wire.get(ACL, bearer(ann), claim, "X-Impersonate: true")).body == (
            await wire.get(ACL, bearer(ann))
        ).body


@pytest.mark.parametrize("is_certified", [False, True])
async def test_a_service_that_says_it_wrongly_acts_for_nobody_and_not_with_all_its_permissions(
    tmp_path: Path, *, is_certified: bool
) -> None:
    async with wired(tmp_path) as wire:
        await wire.identity.log_in("ann@example.com")
        token = await wire.identity.service_token(REGION)
        said = {"x-principal": principal({"actor": "ann@example.com", "type": "user"}), "x-impersonate": "True"}
        shown = wire.service() if is_certified else {"authorization": f"Bearer {token}"}
        good = await wire.get(ACL, *{**shown, **said}.items())
        assert good == Answer(200, {}), "what both may do is nothing"
        wrong = [{"x-impersonate": request} for request in ("1", "yes", "true,true", "", "ture")]
        wrong += [{"x-principal": claim} for claim in ("?!", "a.b.c", "", principal({"type": "king"}), "a" * 9000)]
        for each in wrong:
            (name,) = each
            refused = await wire.get(ACL, *{**shown, **said, **each}.items())
            assert refused.status == 400, each
            assert refused.body["error_description"].lower().startswith(f"{name} is "), each
            assert ": send " in refused.body["error_description"], each


async def test_lines_that_are_no_headers_are_refused(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        headers = wire.service()
        verify = headers.pop("ssl-client-verify")
        for line in (
            f"ssl-client-verify : {verify}",
            f"ssl-client-verify:\r\n {verify}",
            f" ssl-client-verify: {verify}",
        ):
            assert (await wire.get(ACL, *headers.items(), line)).status in {400, 401}, line
        hidden = f"x: y\nssl-client-verify: {verify}"
        assert (await wire.get(ACL, *headers.items(), hidden)).status == 400


async def test_a_request_within_a_request_is_not_answered(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        user = await wire.identity.log_in("ann@example.com")
        inner = "\r\n".join([f"GET {ACL} HTTP/1.1", "Host: here", *map(": ".join, wire.service().items()), "", ""])
        length = f"Content-Length: {len(inner)}"
        for lines, body in (
            ([length, "Transfer-Encoding: chunked"], f"0\r\n\r\n{inner}"),
            ([length, "Content-Length: 0"], inner),
            (["Content-Length: 0", length], inner),
            (["Transfer-Encoding: identity, chunked", length], f"0\r\n\r\n{inner}"),
            ([length], inner),
        ):
            outer = [f"POST {ACL} HTTP/1.1", "Host: here", "Connection: close", bearer(user), *lines, "", body]
            answers = await wire.exchange("\r\n".join(outer).encode())
            assert len(answers) == 1, lines
            assert answers[0].status in {400, 405}, lines
