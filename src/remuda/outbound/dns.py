"""TXT records of names that users choose.

A lookup has a deadline, and few run at the same time. It goes to the configured name servers, or to those of the
machine, which should validate DNSSEC. Nothing is cached here: a record that was just published is to be found.
"""

import asyncio
from collections.abc import Sequence

from dns.asyncresolver import Resolver
from dns.exception import DNSException
from dns.nameserver import Do53Nameserver
from dns.resolver import NXDOMAIN, NoNameservers, NoResolverConfiguration, Timeout
from dns.resolver import YXDOMAIN as TOO_LONG_BY_ALIAS

from remuda.kernel.errors import Unavailable
from remuda.outbound.addresses import read_name_server

_TIME_S = 5.0
_CONCURRENCY = 4
_MAX_RECORDS = 100


class TxtResolver:
    """DNS client for TXT records."""

    def __init__(self, servers: Sequence[str] = (), *, time_s: float = _TIME_S) -> None:
        self._servers, self._time_s = tuple(map(read_name_server, servers)), time_s
        self._slots = asyncio.Semaphore(_CONCURRENCY)

    async def __call__(self, name: str) -> Sequence[str]:
        """Return the texts of a name's TXT records, none if it has none, or raise Unavailable if no server knows."""
        async with self._slots:
            try:
                async with asyncio.timeout(self._time_s):
                    return await self._resolve(name)
            except (TimeoutError, OSError, Timeout, NoNameservers, NoResolverConfiguration):
                raise Unavailable("The name servers do not respond: try again in a minute.") from None

    async def _resolve(self, name: str) -> Sequence[str]:
        try:
            response = await self._client().resolve(f"{name}.", "TXT", search=False, lifetime=self._time_s)
        except (NXDOMAIN, TOO_LONG_BY_ALIAS):
            return ()
        except (Timeout, NoNameservers, NoResolverConfiguration):
            raise
        except DNSException:  # it has no TXT record, or is too long, or no name
            return ()
        records = list(response.rrset or ())[:_MAX_RECORDS]
        return [b"".join(each.strings).decode("ascii", "replace") for each in records]

    def _client(self) -> Resolver:
        """Return a client. Without configured servers it reads those of the machine, which may have changed."""
        client = Resolver(configure=not self._servers)
        if self._servers:
            client.nameservers = [Do53Nameserver(address, port) for address, port in self._servers]
        return client
