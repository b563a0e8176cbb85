"""Proxies in front of the server: who may name the client's address, and who may vouch for a client's certificate.

The two are separate, because a certificate is worth more: a proxy that may vouch for one could be any service. So what
it passes on counts only if one of our own authorities has issued the certificate.
"""

from collections.abc import Iterable
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from remuda.http.certificates import ClientAuthorities, read_chain, to_pem


class ProxyNetworks:
    """Networks of proxies: none by default."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks: tuple[IPv4Network | IPv6Network, ...] = tuple(map(ip_network, networks))

    def __contains__(self, peer: str) -> bool:
        if not self._networks:
            return False
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class ForwardingProxies(ProxyNetworks):
    """Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count."""

    def client_of(self, peer: str, forwarded: bytes) -> str:
        """Return the client's address of a request that `peer` sent with this `X-Forwarded-For`.

        Each proxy appends the address of its client. So the last address that is not a trusted proxy is the client; the
        addresses before it may be forged.
        """
        hops = [hop.strip() for hop in forwarded.decode("latin-1").split(",")]
        while peer in self and hops and _is_address(hops[-1]):
            peer = hops.pop()
        return peer


_LONGEST_ADDRESS = 64
"""More than the longest address with its zone, so that a long text costs nothing."""


def _is_address(text: str) -> bool:
    if len(text) > _LONGEST_ADDRESS:
        return False
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class CertificateProxies(ProxyNetworks):
    """Proxies that may pass on client certificates in headers, and the authorities that must have issued these."""

    def __init__(self, networks: Iterable[str] = (), authorities: ClientAuthorities | None = None) -> None:
        """Raise ValueError if there are networks and no authorities: any certificate would be believed."""
        super().__init__(networks)
        if self._networks and authorities is None:
            raise ValueError("proxies that vouch for certificates need authorities that have issued these")
        self._authorities = authorities

    def verified(self, header: bytes, now: datetime) -> str:
        """Return the certificate of a header, with its intermediate ones, as PEM.

        Raise Malformed if it is no certificate, and Unauthenticated if none of the authorities has issued it.
        """
        assert self._authorities is not None, "only a proxy's headers are read"
        chain = read_chain(header)
        self._authorities.verify(chain, now)
        return to_pem(chain)

    def check_revocation(self, certificate: str, now: datetime) -> None:
        """Raise Unauthenticated if a certificate (PEM) that TLS has verified may be revoked."""
        if self._authorities is not None:
            self._authorities.check_revocation(certificate, now)
