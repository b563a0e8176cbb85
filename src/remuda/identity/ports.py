"""Dependencies of identity."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from remuda.identity.settings import IdentitySettings
from remuda.service import ServicePorts


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Response of an external server."""

    status: int
    body: bytes


class Fetch(Protocol):
    """Port that sends requests to external servers; tests implement their own."""

    async def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, /, *, organization: str
    ) -> Fetched:
        """Return the response, or raise Unavailable after a timeout or too much data.

        `organization` is the one that has named the server, and whose share is used; empty for one that an operator
        has configured.
        """


FetchFor = Callable[[str, str, dict[str, str], bytes | None], Awaitable[Fetched]]
"""`Fetch` for one organization: a partial function."""


class FindTxt(Protocol):
    """Port that finds the TXT records of a DNS name; tests implement their own."""

    async def __call__(self, name: str, /, *, organization: str) -> Sequence[str]:
        """Return the texts of the records, or raise Unavailable if the name servers do not respond.

        `organization` is the one that has named the domain, and whose share is used.
        """


@dataclass(frozen=True, kw_only=True)
class IdentityPorts(ServicePorts):
    """Dependencies of identity."""

    fetch: Fetch
    find_txt: FindTxt
    settings: IdentitySettings = field(default_factory=IdentitySettings)
