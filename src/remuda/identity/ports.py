"""What identity is given to work with."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from remuda.identity.settings import IdentitySettings
from remuda.service import ServicePorts

T = TypeVar("T")


class Aside(Protocol):
    """Runs what would hold the loop for too long somewhere else, such as in a thread."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work returns."""
        ...


async def in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer of somebody else's server."""

    status: int
    body: bytes


Fetch = Callable[[str, str, dict[str, str], bytes | None], Awaitable[Fetched]]
"""Asks somebody else's server: method, URL, headers, body. Raises Unavailable if it does not answer in time, or with
more than we read."""


@dataclass(frozen=True, kw_only=True)
class IdentityPorts(ServicePorts):
    """Everything outside identity that it touches."""

    fetch: Fetch
    aside: Aside = in_thread
    settings: IdentitySettings = field(default_factory=IdentitySettings)
