from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from structlog.testing import capture_logs

from remuda.http.errors import CONTRACT_WORDS, OWN_WORDS, ErrorBody, OtherErrorBody, challenge, error_response
from remuda.http.proxies import ForwardingProxies
from remuda.http.ratelimit import OverLimit
from remuda.http.request import InboundRequest, Observation
from remuda.kernel.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    InFlight,
    Invalid,
    Malformed,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    RemudaError,
    ServerUnreachable,
    StorageFull,
    StoreLocked,
    TimedOut,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unreadable,
)
from tests.kit.sample_api.pipeline import HORSE, HORSES, running

API = "http://api.example.com:8080/sample"
TRACE = "0123456789abcdef" * 2
INTERNAL = "an internal error has occurred, please contact support"
LATER = "the service is temporarily unavailable: try again later"


def body_of(error: Exception) -> dict[str, Any]:
    body = error_response(error, trace_id=TRACE).body
    assert isinstance(body, bytes)
    decoded: dict[str, Any] = msgspec.json.decode(body)
    return decoded


def headers_of(error: Exception, url: str = "") -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in error_response(error, trace_id=TRACE, url=url).headers}


def inbound(**headers: bytes) -> InboundRequest:
    """Return a request with these headers to an API that is mounted below a prefix."""

    async def receive() -> dict[str, Any]:
        raise AssertionError("nobody reads it")

    sent = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    scope = {"scheme": "http", "root_path": "/sample", "headers": sent}
    return InboundRequest(scope, receive, Observation(TRACE, 0.0, ("127.0.0.1", 1)))


@pytest.mark.parametrize(
    ("error", "status", "word", "description"),
    [
        (Malformed("x is wrong"), 400, "invalid_request", "x is wrong"),
        (Unauthenticated("authorization header missing"), 401, "access_denied", "authorization header missing"),
        (Forbidden("no — never"), 403, "forbidden", "no — never"),
        (NotFound("Horse", "bella"), 404, "not_found", "resource not found"),
        (NotAllowed(["GET"]), 405, "method_not_allowed", "the requested method was not allowed"),
        (AlreadyExists("Horse", "bella"), 409, "conflict", "the requested resource already exists"),
        (Conflict("Horse", "bella"), 409, "conflict", str(Conflict("Horse", "bella"))),
        (
            TooLarge("body", 7),
            413,
            "request_entity_too_large",
            "The body is longer than the limit of 7 bytes: send a smaller one.",
        ),
        (Invalid("age", "is odd", remedy="be even"), 422, "unprocessable_content", "age is odd: be even."),
        (Unreadable("Horse", "bella", cause="/data"), 500, "server_error", INTERNAL),
        (ZeroDivisionError("swordfish"), 500, "server_error", INTERNAL),
        (Unavailable("Starting: wait."), 503, "unavailable", "Starting: wait."),
        (TimedOut(30), 503, "unavailable", str(TimedOut(30))),
        (OutcomeUnknown("the create"), 503, "unavailable", str(OutcomeUnknown("the create"))),
        (StorageFull("/data/a.db"), 503, "unavailable", LATER),
        (ServerUnreachable("https://10.0.0.1", "refused"), 503, "unavailable", LATER),
        (StoreLocked("/data/a.db"), 503, "unavailable", LATER),
    ],
)
def test_an_error_has_its_status_word_and_description(
    error: Exception, status: int, word: str, description: str
) -> None:
    assert error_response(error, trace_id=TRACE).status == status
    assert body_of(error) == {
        "error": word,
        "error_description": description,
        "trace_id": TRACE,
        "code": error.code if isinstance(error, RemudaError) else "internal",
    }
    assert headers_of(error).items() >= {"content-type": "application/json", "cache-control": "no-cache"}.items()


def test_the_words_are_those_of_the_schemas() -> None:
    for schema, words in ((ErrorBody, CONTRACT_WORDS), (OtherErrorBody, OWN_WORDS)):
        (field,) = (field for field in msgspec.structs.fields(schema) if field.name == "error")
        assert set(get_args(get_args(field.type)[0])) == set(words.values())
    assert not set(CONTRACT_WORDS.values()) & set(OWN_WORDS.values())


def test_every_error_of_ours_has_a_word() -> None:
    def family(root: type[RemudaError]) -> set[type[RemudaError]]:
        return {root}.union(*(family(child) for child in root.__subclasses__()))

    assert {error.status for error in family(RemudaError)} <= {*CONTRACT_WORDS, *OWN_WORDS}


def test_problems_are_told_place_by_place() -> None:
    assert body_of(Malformed("x", [("/a", "is odd")]))["problems"] == [{"pointer": "/a", "reason": "is odd"}]


def test_an_error_says_when_to_come_back_and_what_is_allowed() -> None:
    assert headers_of(InFlight(3))["retry-after"] == "3"
    assert headers_of(NotAllowed(["GET", "PUT"]))["allow"] == "GET, PUT"
    limited = OverLimit(4, ((b"ratelimit", b"x"), (b"retry-after", b"4")))
    told = [name for name, _ in error_response(limited, trace_id=TRACE).headers]
    assert (told.count(b"ratelimit"), told.count(b"retry-after")) == (1, 1)


def test_a_caller_without_credentials_is_told_where_to_get_some() -> None:
    assert headers_of(Unauthenticated("authorization header missing"), API)["www-authenticate"] == (
        'Bearer error="access_denied",error_description="authorization header missing",'
        'resource_metadata="http://api.example.com:8080/sample/.well-known/openid-protected-resource"'
    )


@pytest.mark.parametrize("host", [b"", b'a",evil="b', b"a\r\nb", b"a b", b"x" * 300, b"a/b"])
def test_a_host_that_is_none_is_not_repeated(host: bytes) -> None:
    url = inbound(host=host).url(ForwardingProxies())
    assert url == ""
    assert challenge("no", url) == (b"www-authenticate", b'Bearer error="access_denied",error_description="no"')


def test_a_url_cannot_break_out_of_the_challenge() -> None:
    _, value = challenge("no", 'http://a",evil="b')
    assert value == b'Bearer error="access_denied",error_description="no"'


def test_the_url_of_an_api_is_as_its_client_and_the_proxies_in_front_have_it() -> None:
    proxies = ForwardingProxies(["127.0.0.1"])
    assert inbound(host=b"api.example.com:8080").url(proxies) == API
    ended = {"host": b"api.example.com", "x_forwarded_proto": b"https"}
    assert inbound(**ended).url(proxies) == "https://api.example.com/sample"
    assert inbound(**ended).url(ForwardingProxies()) == "http://api.example.com/sample"


def test_a_description_cannot_break_out_of_the_challenge() -> None:
    _, value = challenge('a"b\\c\r\nd—e', "")
    assert value == b'Bearer error="access_denied",error_description="abcde"'


async def test_a_defect_is_logged_under_the_trace_id_that_the_caller_has(tmp_path: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError("swordfish")

    with capture_logs() as lines:
        async with running(tmp_path) as api:
            api.service.act = fail
            reply = await api.client.get(f"{HORSES}/{HORSE}")
    assert (reply.status, reply.json["error_description"], reply.json["code"]) == (500, INTERNAL, "internal")
    assert b"swordfish" not in reply.body
    assert any(reply.json["trace_id"] in repr(line) and "swordfish" in repr(line) for line in lines), lines


async def test_a_failing_store_is_logged_and_not_described(tmp_path: Path) -> None:
    def fail() -> None:
        raise StorageFull("/data/secret.db")

    with capture_logs() as lines:
        async with running(tmp_path) as api:
            api.service.act = fail
            reply = await api.client.get(f"{HORSES}/{HORSE}")
    assert (reply.status, reply.json["code"], reply.json["error_description"]) == (503, "storage_full", LATER)
    assert any("/data/secret.db" in repr(line) for line in lines), lines
