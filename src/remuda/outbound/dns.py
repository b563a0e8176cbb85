"""TXT records of names that users choose.

A lookup has a deadline, and few run at the same time: organizations take turns, and one has a share of them, because
it chooses the names, and so the name servers. A lookup goes to the configured name servers, or to those of the machine,
which should validate DNSSEC. Nothing is cached here: a record that was just published is to be found.

dnspython loads an HTTP client, so it is imported in a thread, at the first lookup.
"""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from remuda.kernel.errors import Unavailable
from remuda.kernel.fair_slots import FairSlots
from remuda.outbound.addresses import read_name_server

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

_TIME_S = 5.0
_QUEUE_S = 60.0
"""Time for which a lookup waits for others."""
_CONCURRENCY, _SHARE = 16, 2
_MAX_RECORDS = 100


class TxtResolver:
    """DNS client for TXT records."""

    def __init__(self, servers: Sequence[str] = (), *, time_s: float = _TIME_S) -> None:
        self._servers, self._time_s = tuple(map(read_name_server, servers)), time_s
        self._slots = FairSlots(_CONCURRENCY, share=_SHARE)

    async def __call__(self, name: str, *, organization: str) -> Sequence[str]:
        """Return the texts of a name's TXT records, none if it has none, or raise Unavailable if no server knows."""
        deadline = asyncio.get_running_loop().time() + _QUEUE_S
        try:
            async with self._slots.acquire(organization, deadline=deadline), asyncio.timeout(self._time_s):
                return await self._resolve(name)
        except (TimeoutError, OSError):
            raise Unavailable("The name servers do not respond: try again in a minute.") from None

    async def _resolve(self, name: str) -> Sequence[str]:
        """Return the texts, or raise TimeoutError if no server knows."""
        await asyncio.to_thread(import_module, "dns.asyncresolver")
        from dns.exception import DNSException  # noqa: PLC0415  imported in the thread
        from dns.resolver import NoNameservers, NoResolverConfiguration, Timeout  # noqa: PLC0415  same

        try:
            response = await self._client().resolve(f"{name}.", "TXT", search=False, lifetime=self._time_s)
        except (Timeout, NoNameservers, NoResolverConfiguration):
            raise TimeoutError from None
        except DNSException:  # it does not exist, has no TXT record, is too long, or is no name
            return ()
        records = list(response.rrset or ())[:_MAX_RECORDS]
        return [b"".join(each.strings).decode("ascii", "replace") for each in records]

    def _client(self) -> "Resolver":
        """Return a client. Without configured servers it reads those of the machine, which may have changed."""
        from dns.asyncresolver import Resolver  # noqa: PLC0415  same
        from dns.nameserver import Do53Nameserver  # noqa: PLC0415  same

        client = Resolver(configure=not self._servers)
        if self._servers:
            client.nameservers = [Do53Nameserver(address, port) for address, port in self._servers]
        return client
