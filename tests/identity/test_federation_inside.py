"""What an organization's provider cannot learn of the network that we are in: nothing there is contacted.

Addresses, and names that resolve to them, are refused before a socket is opened. So neither the error nor the time can
depend on what listens there: an open port, a closed one, and one that does not respond are the same.
"""

import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from remuda.identity.federation.provider_client import Fetcher, fetch_json, read_keys
from remuda.identity.ports import FetchFor
from remuda.kernel.errors import OAuthError
from remuda.outbound.addresses import AddressPolicy, IpAddress, Resolver
from remuda.outbound.fetch import GuardedFetcher
from tests.kit.outbound_servers import redirecting, saying, serving

PUBLIC = "93.184.215.14"
INSIDE = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "fe80::1",
    "fd00::1",
)
"""Loopback, in the forms in which IPv6 writes it; private and shared networks; the metadata server of a cloud."""

Request = Callable[[FetchFor, str], Awaitable[object]]

REQUESTS: dict[str, Request] = {
    "discovery": lambda fetch, base: fetch_json(fetch, "GET", f"{base}/.well-known/openid-configuration", dict),
    "keys": lambda fetch, base: read_keys(fetch, f"{base}/jwks"),
    "token": lambda fetch, base: fetch_json(fetch, "POST", f"{base}/token", dict, body=b"grant_type=a"),
}


@contextmanager
def recording() -> Iterator[list[Any]]:
    """Record the addresses to which this process connects."""
    connected = []

    def recorded(connect: Callable[[socket.socket, Any], object]) -> Callable[[socket.socket, Any], object]:
        def connect_recorded(self: socket.socket, address: Any) -> object:
            connected.append(address)
            return connect(self, address)

        return connect_recorded

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", recorded(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", recorded(socket.socket.connect_ex))
        yield connected


def resolving(*addresses: str) -> Resolver:
    async def resolve(host: str, port: int) -> Sequence[IpAddress]:  # noqa: ARG001  whatever is asked
        if not addresses:
            raise OSError("unknown")
        return [ip_address(each) for each in addresses]

    return resolve


@contextmanager
def ports() -> Iterator[dict[str, int]]:
    """Yield a port that is open, one that is closed, and one that accepts nothing more."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(2)]
        for listener, backlog in zip(listeners, (100, 0), strict=True):
            listener.bind(("127.0.0.1", 0))
            listener.listen(backlog)
        full = listeners[1].getsockname()
        for _ in range(4):  # more than the queue of the last one holds
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(full)
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            closed = unused.getsockname()[1]
        yield {"open": listeners[0].getsockname()[1], "closed": closed, "silent": full[1]}


async def told(request: str, fetch: Fetcher, base: str) -> tuple[str, str, int, str]:
    """Return everything that the organization is told of a refused request."""
    with pytest.raises(OAuthError) as raised:
        await REQUESTS[request](partial(fetch, organization=""), base)
    error = raised.value
    return error.code, error.error, error.status, error.message


@pytest.mark.parametrize("request_name", REQUESTS)
async def test_m27_nothing_inside_is_contacted_and_open_closed_and_silent_ports_are_the_same(request_name: str) -> None:
    said = set()
    with ports() as found, recording() as connected:
        for port in found.values():
            for inside in INSIDE:
                literal = f"[{inside}]" if ":" in inside else inside
                for scheme in ("https", "http") if ip_address(inside).is_loopback else ("https",):
                    said.add(await told(request_name, Fetcher(_guarded()), f"{scheme}://{literal}:{port}"))
                named = Fetcher(_guarded(inside))
                said.add(await told(request_name, named, f"https://idp.example.com:{port}"))
                mixed = Fetcher(_guarded(PUBLIC, inside))
                said.add(await told(request_name, mixed, f"https://idp.example.com:{port}"))
        said.add(await told(request_name, Fetcher(_guarded()), "https://unknown.example.com"))
    assert connected == []
    assert len(said) == 1, "an address inside is like a name that nobody knows"


def _guarded(*addresses: str) -> GuardedFetcher:
    return GuardedFetcher(resolve=resolving(*addresses))


@pytest.mark.parametrize("request_name", REQUESTS)
async def test_a_redirect_to_the_inside_is_not_followed(request_name: str) -> None:
    outside = AddressPolicy((ip_network("127.0.0.2/32"),))
    fetch = Fetcher(GuardedFetcher(resolve=resolving(), reach=outside))
    async with serving(saying(b"{}")) as inside:
        said = set()
        for location in (inside.url(), inside.url("localhost"), "http://127.0.0.1:1/", "http://169.254.169.254/"):
            async with serving(redirecting(location), at="127.0.0.2") as outer:
                with recording() as connected:
                    said.add(await told(request_name, fetch, outer.url("127.0.0.2", path="")))
                assert {address[0] for address in connected} == {"127.0.0.2"}
        assert inside.asked == []
    assert len(said) == 1


async def test_the_recording_sees_a_connection() -> None:
    here = AddressPolicy((ip_network("127.0.0.0/8"),))
    async with serving(saying(b"{}")) as server:
        with recording() as connected:
            fetch = Fetcher(GuardedFetcher(resolve=resolving(), reach=here))
            assert await fetch_json(partial(fetch, organization=""), "GET", server.url(), dict) == {}
        assert [address[0] for address in connected] == ["127.0.0.1"]
