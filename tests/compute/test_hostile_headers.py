"""No header, cookie or token makes any of the three services fail: what is wrong with it is said with a 4xx."""

from collections.abc import Callable, Iterator
from random import Random

import msgspec

from remuda.identity.tokens.jwt import unverified_claims
from remuda.kernel.encoding import to_base64url
from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment

_NUMBERS = (
    *("0", "-0", "-1", "9" * 400, "-" + "9" * 400, "9" * 5_000, "9" * 200),
    *("1e400", "-1e400", "1.5", "NaN", "18446744073709551616"),
)
_TEXTS = (
    *("", " ", "a" * 9_000, "é", "\x7f", '"', "\\", "%", "%zz", "%00", ";=;=", ",,,"),
    *("null", "[]", "{}", "../..", "٣" * 20),
)
_VALUES = (*_NUMBERS, '"a"', "null", "[1]", "{}", "true", '"\\ud800"')
_ISSUER = "https://login.example.com"
_WRONG = 400
_EACH = 120


def _texts(random: Random) -> Iterator[str]:
    """Yield numbers and texts that parsers are known to stumble over, and mixtures of them."""
    yield from (*_NUMBERS, *_TEXTS)
    while True:
        yield "".join(random.choice((*_NUMBERS[:5], *_TEXTS, "-", ".", "=", ":")) for _ in range(random.randint(1, 4)))


def _tokens(random: Random) -> Iterator[str]:
    """Yield tokens whose header or claims have a wrong value somewhere."""
    header: dict[str, object] = {"alg": "ES512", "kid": "k", "typ": "at+jwt"}
    claims: dict[str, object] = {
        "iss": "https://login.example.com",
        "sub": "s",
        "exp": 1,
        "iat": 1,
        "nbf": 1,
        "jti": "j",
    }
    while True:
        part = random.choice((header, claims))
        name, value = (
            random.choice([*part]),
            random.choice((*_NUMBERS, '"a"', "null", "[1]", "{}", "true", '"\\ud800"')),
        )
        encoded = {
            id(each): to_base64url(
                msgspec.json.encode({**each, name: "HERE"} if each is part else each).replace(b'"HERE"', value.encode())
            )
            for each in (header, claims)
        }
        yield f"{encoded[id(header)]}.{encoded[id(claims)]}.{'a' * random.choice((0, 1, 176))}"


def _claims(random: Random) -> Iterator[str]:
    """Yield values of X-Principal."""
    for text in _texts(random):
        named = random.choice(("actor", "type", "organizationId", "projectId", "organizationIds", "issuer"))
        yield text if random.random() < 0.3 else to_base64url(f'{{"{named}":{text}}}'.encode())


_HEADERS: dict[str, Callable[[Random], Iterator[str]]] = {
    "authorization": lambda random: (f"Bearer {each}" for each in _tokens(random)),
    "Authorization": lambda random: (f"{random.choice(('Bearer', 'Basic', 'x'))} {each}" for each in _texts(random)),
    "cookie": lambda random: (f"remuda-login={each}; remuda-known-browser={each}" for each in _texts(random)),
    "x-principal": _claims,
    **dict.fromkeys(
        ("last-event-id", "if-match", "idempotency-key", "traceparent", "x-forwarded-for", "x-impersonate"), _texts
    ),
    **dict.fromkeys(("accept", "content-type", "content-length", "origin", "x-forwarded-proto", "host"), _texts),
}


async def test_no_header_is_a_5xx(compute: ComputeEnvironment) -> None:
    random, network = Random(5), await compute.region.network()
    instance = await compute.instance(network)
    targets: list[tuple[Client, str]] = [
        (compute.root, f"{INSTANCES}/{instance}"),
        (compute.root, INSTANCES),
        (compute.region.root, f"/api/v2/networks/{network}"),
        (compute.region.identity.client(compute.region.identity.root), "/oauth2/v2/userinfo"),
        (compute.region.identity.client(compute.region.identity.root), "/oauth2/v2/account"),
    ]
    found: dict[int, int] = {}
    for name, values in _HEADERS.items():
        drawn = values(random)
        for _ in range(_EACH):
            value, (client, path) = next(drawn), random.choice(targets)
            sent = {name.lower(): value.encode("utf-8", "surrogatepass").decode("latin-1")}
            sender = client.having(None) if name.lower() == "authorization" else client
            reply = await sender.send(random.choice(("GET", "PUT")), path, headers=sent)
            assert reply.status < 500, (name, value[:200], path, reply.status, reply.body[:200])
            found[reply.status] = found.get(reply.status, 0) + 1
    assert found.get(200, 0), "some are harmless"
    assert sum(times for status, times in found.items() if status >= _WRONG) > _EACH


async def test_no_cursor_is_a_5xx(compute: ComputeEnvironment) -> None:
    version = (await compute.root.get(INSTANCES)).headers["x-resource-version"]
    for number in (each for each in (*_NUMBERS, *_TEXTS) if each not in {"0", "18446744073709551616"}):
        cursor = f"{number}-{version.rpartition('-')[2]}".encode().decode("latin-1")
        headers = {"last-event-id": cursor, "accept": "text/event-stream"}
        reply = await compute.root.send("GET", INSTANCES, query={"watch": "true"}, headers=headers)
        assert _WRONG <= reply.status < 500, (number, reply.status)


def test_no_token_fails_before_its_signature_is_checked() -> None:
    for _, token in zip(range(2_000), _tokens(Random(7)), strict=False):
        unverified_claims(token)
