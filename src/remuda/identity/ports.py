"""Dependencies of identity."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from remuda.identity.settings import IdentitySettings
from remuda.service import ServicePorts

T = TypeVar("T")


class RunBlocking(Protocol):
    """Runs blocking work outside the event loop, such as in a thread."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of the work."""


async def in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Response of an external server."""

    status: int
    body: bytes


Fetch = Callable[[str, str, dict[str, str], bytes | None], Awaitable[Fetched]]
"""Sends method, URL, headers and body to an external server. Raises Unavailable after a timeout or too much data."""


@dataclass(frozen=True, kw_only=True)
class IdentityPorts(ServicePorts):
    """Dependencies of identity."""

    fetch: Fetch
    run_blocking: RunBlocking = in_thread
    settings: IdentitySettings = field(default_factory=IdentitySettings)
