"""Turning a name into numeric addresses, as a port: a simulation and a test answer for themselves."""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Protocol

from remuda.outbound.addresses import Address


class Resolver(Protocol):
    """Who knows the numbers of a name."""

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        """Return all numeric addresses of a host, best first, or raise OSError."""
        ...


class SystemResolver:
    """The machine's own resolver."""

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        """Ask the machine's resolver."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(ip_address(address[0]) for *_, address in found))
