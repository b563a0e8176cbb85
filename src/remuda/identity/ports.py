"""Dependencies of identity."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from remuda.identity.settings import IdentitySettings
from remuda.service import ServicePorts


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Response of an external server."""

    status: int
    body: bytes


Fetch = Callable[[str, str, dict[str, str], bytes | None], Awaitable[Fetched]]
"""Sends method, URL, headers and body to an external server. Raises Unavailable after a timeout or too much data."""

FindTxt = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the texts of the TXT records of a DNS name. Raises Unavailable if the name servers do not respond."""


@dataclass(frozen=True, kw_only=True)
class IdentityPorts(ServicePorts):
    """Dependencies of identity."""

    fetch: Fetch
    find_txt: FindTxt
    settings: IdentitySettings = field(default_factory=IdentitySettings)
