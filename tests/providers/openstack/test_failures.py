"""What each kind of failure becomes: a server on loopback answers what no real OpenStack does when it is asked to."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from remuda.kernel.errors import ServerUnreachable, Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.openstack.client import CloudAddress, CloudSession, OpenStackClient
from remuda.providers.openstack.errors import ApiError, Denied, LoginRejected, NoIdentityService, QuotaUsedUp
from remuda.providers.openstack.logins import PasswordLogin
from tests.kit.child_processes import free_ports
from tests.kit.clocks import HandClock
from tests.kit.scripted_server import Answer, Server, told

FLAVORS = told({"flavors": []})
Call = Callable[[CloudSession], Awaitable[Any]]


async def read(session: CloudSession) -> Any:
    return await session.items("compute", "/flavors", "flavors", dict)


async def write(session: CloudSession) -> Any:
    return await session.post("compute", "/servers", {"server": {}})


class Cloud(Server):
    """A Keystone that gives a token to everyone, and one service that answers one thing after the other."""

    def __init__(self, *answers: Answer, token: Answer | Callable[["Cloud"], Answer] | None = None) -> None:
        super().__init__(*answers)
        self._token = token
        self.tokens = 0

    def answer(self) -> Answer:
        if not self.asked[-1][1].endswith("/auth/tokens"):
            return super().answer()
        self.tokens += 1
        if self._token is not None:
            return self._token(self) if callable(self._token) else self._token
        endpoint = {"interface": "public", "url": f"{self.url}/compute", "region": "north"}
        token = {"expires_at": "2026-01-02T00:00:00Z", "catalog": [{"type": "compute", "endpoints": [endpoint]}]}
        return 201, {"X-Subject-Token": f"token-{self.tokens}"}, msgspec.json.encode({"token": token})

    @property
    def calls(self) -> list[str]:
        """Tokens with which the service was called."""
        return [headers["x-auth-token"] for _, path, headers in self.asked if not path.endswith("/auth/tokens")]


def after(cloud: Cloud, *calls: Call, clock: HandClock | None = None, timeout_s: float = 20.0) -> list[Any]:
    """Return what calls returned or raised."""

    async def run() -> list[Any]:
        address = CloudAddress(auth_url=f"{cloud.url}/v3", timeout_s=timeout_s)
        client = OpenStackClient(address, clock=clock or HandClock())
        session = client.session(PasswordLogin("user", Secret("password"), domain="domain"))
        try:
            return [await outcome(call(session)) for call in calls]
        finally:
            await client.close()

    async def outcome(made: Awaitable[Any]) -> Any:
        try:
            return await made
        except Exception as error:  # noqa: BLE001  the test looks at it
            return error

    with cloud.running():
        return asyncio.run(run())


def error(status: int, message: str, kind: str = "", **headers: str) -> Answer:
    body = {"error": {"message": message, "type": kind}}
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, msgspec.json.encode(body)


def test_a_token_is_used_for_all_calls() -> None:
    cloud = Cloud(FLAVORS, FLAVORS)
    assert after(cloud, read, read) == [[], []]
    assert cloud.calls == ["token-1", "token-1"]


def test_a_token_that_is_rejected_is_replaced_once() -> None:
    cloud = Cloud(error(401, "no"), FLAVORS, error(401, "no"), error(401, "no"))
    first, second = after(cloud, read, read)
    assert first == []
    assert isinstance(second, LoginRejected)
    assert cloud.calls == ["token-1", "token-2", "token-2", "token-3"]


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (error(403, "Policy doesn't allow it to be performed."), Denied, "Policy doesn't allow it"),
        (error(403, "Policy doesn't allow os_compute_api:os-quota-sets:update to be performed."), Denied, "quota-sets"),
        (error(404, "Flavor x could not be found."), ApiError, "Flavor x could not be found"),
        (error(409, "Instance is locked."), ApiError, "Instance is locked"),
        ((415, {}, b"<html>not JSON"), ApiError, "compute responded with status 415"),
        (error(403, "Quota exceeded for cores: Requested 1"), QuotaUsedUp, "operator"),
        (error(409, "Quota exceeded for resources: ['port'].", "OverQuota"), QuotaUsedUp, "operator"),
        (error(413, "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota"), QuotaUsedUp, ""),
    ],
)
def test_a_request_that_is_denied_says_why(answer: Answer, expected: type[Exception], words: str) -> None:
    (found,) = after(Cloud(answer), write)
    assert type(found) is expected
    assert words in str(found)


def test_a_quota_is_told_to_the_operator_and_not_to_the_tenant() -> None:
    with capture_logs() as events:
        (found,) = after(Cloud(error(403, "Quota exceeded for cores: 7 of 7")), write)
    assert "7 of 7" not in str(found)
    assert [each["reason"] for each in events if "quota" in each["event"]] == ["Quota exceeded for cores: 7 of 7"]


@pytest.mark.parametrize("answer", [error(500, "oops"), error(502, "oops"), (503, {}, b""), None])
def test_a_write_may_have_taken_effect_and_a_read_may_be_repeated(answer: Answer) -> None:
    assert isinstance(after(Cloud(answer), write)[0], ConnectionError)
    (found,) = after(Cloud(answer), read)
    assert isinstance(found, Unavailable | ConnectionError)


@pytest.mark.parametrize("status", [413, 429, 503])
def test_nothing_is_sent_until_the_time_that_the_service_asks_for(status: int) -> None:
    clock = HandClock()
    cloud = Cloud(error(status, "slow down", Retry_After="7"), FLAVORS)

    async def wait(_session: CloudSession) -> None:
        clock.seconds += 7

    first, second, _, last = after(cloud, write, read, wait, read, clock=clock)
    assert isinstance(first, Unavailable)
    assert "7 s" in str(first)
    assert isinstance(second, Unavailable)
    assert last == []
    assert len(cloud.calls) == 2, "the second call was not sent"


def test_a_login_is_limited_too() -> None:
    cloud = Cloud(token=error(429, "slow down", Retry_After="30"))
    assert all(isinstance(each, Unavailable) for each in after(cloud, read, read))
    assert cloud.tokens == 1


def test_a_connection_that_is_refused_had_no_effect() -> None:
    cloud = Cloud()
    cloud.url = f"http://127.0.0.1:{free_ports(1)[0]}"

    class Closed:
        url = cloud.url

        @contextmanager
        def running(self) -> Iterator[None]:
            yield

    (found,) = after(Closed(), write)  # type: ignore[arg-type]
    assert isinstance(found, ServerUnreachable)


def test_a_request_without_an_answer_ends_by_itself() -> None:
    released = threading.Event()

    class Silent(Cloud):
        def answer(self) -> Answer:
            if not self.asked[-1][1].endswith("/auth/tokens"):
                released.wait(20)
                return None
            return super().answer()

    try:
        (found,) = after(Silent(), _released_after(write, released), timeout_s=0.2)
    finally:
        released.set()
    assert isinstance(found, ConnectionError)


def _released_after(call: Call, event: threading.Event) -> Call:
    async def made(session: CloudSession) -> Any:
        try:
            return await call(session)
        finally:
            event.set()

    return made


@pytest.mark.parametrize(
    ("token", "expected", "words"),
    [
        (error(401, "The request you have made requires authentication."), LoginRejected, "user, password or domain"),
        ((200, {}, b"<html>Welcome"), NoIdentityService, "/identity/v3"),
        (told({"token": {}}), NoIdentityService, "/identity/v3"),
        ((404, {}, b"nothing"), NoIdentityService, "status 404"),
        ((302, {"Location": "https://elsewhere.example"}, b""), NoIdentityService, "status 302"),
        (error(500, "oops"), Unavailable, "try again"),
        (None, ServerUnreachable, "check its address"),
    ],
)
def test_a_login_that_fails_names_the_remedy(token: Answer, expected: type[Exception], words: str) -> None:
    cloud = Cloud(token=token if token is not None else lambda _: None)
    (found,) = after(cloud, write)
    assert type(found) is expected
    assert words in str(found)
    assert "password" not in str(found).replace("user, password or domain", ""), "no credential is shown"


def test_a_service_that_the_catalogue_lacks_is_named() -> None:
    async def lacking(session: CloudSession) -> Any:
        return await session.items("network", "/networks", "networks", dict)

    (found,) = after(Cloud(), lacking)
    assert isinstance(found, Unavailable)
    assert "network" in str(found)


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b'{"flavors": 1}', b"{}"])
def test_an_answer_that_cannot_be_read_is_no_empty_list(body: bytes) -> None:
    (found,) = after(Cloud((200, {}, body)), read)
    assert isinstance(found, Unavailable)
