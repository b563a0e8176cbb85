"""Reading the address of a server that somebody else names.

Readers of URLs disagree about the odd ones, and who checks with one reader and connects with another can be led astray.
So there is one reading, here, and it takes no odd ones: nothing that looks like credentials, no backslash, no number
written in another way than as four decimal bytes, no IPv6 zone. What is left is a scheme, a host, a port and a path.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urljoin

from remuda.outbound.addresses import Address

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 4096
_LARGEST_PORT = 65535
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<host>[^\x00-\x20\x7f/?#@\\:\[\]%]+))"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>[/?][^\x00-\x20\x7f#\\]*)?"
    r"(?:#.*)?",
    re.IGNORECASE | re.ASCII,
)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.(?!-)[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: `host` is a name in lower case, or a numeric address, which is `literal` then, too."""

    scheme: str
    host: str
    port: int
    path: str
    literal: Address | None = None

    @property
    def authority(self) -> str:
        """The host as a request names it, with its port where that is not the usual one."""
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return _bracketed(self.host) + port

    def at(self, address: Address) -> str:
        """Return the URL of the same thing at one numeric address."""
        return f"{self.scheme}://{_bracketed(str(address))}:{self.port}{self.path}"

    def elsewhere(self, location: str) -> "Target | None":
        """Return where a redirect of this target leads, or None where that cannot be read."""
        here = f"{self.scheme}://{self.authority}{self.path}"
        try:
            return read_target(urljoin(here, location))
        except ValueError:
            return None


def read_target(url: str) -> Target | None:
    """Return what a URL addresses, or None where it is none that we speak to."""
    found = _URL.fullmatch(url) if len(url) <= _LONGEST else None
    if found is None:
        return None
    scheme = found["scheme"].lower()
    port = int(found["port"] or _DEFAULT_PORTS[scheme])
    host = _host(found["host"], found["six"])
    if host is None or not 0 < port <= _LARGEST_PORT:
        return None
    rest = found["rest"] or "/"
    path = rest if rest.startswith("/") else f"/{rest}"
    return Target(scheme, str(host), port, path, host if not isinstance(host, str) else None)


def _host(written: str | None, six: str | None) -> str | Address | None:
    try:
        if written is None:
            return IPv6Address(six)
        name = written.encode("idna").decode().lower().removesuffix(".")
        if _NUMBER.fullmatch(name.rpartition(".")[2]):
            return IPv4Address(name)
    except ValueError:
        return None
    return name if _NAME.fullmatch(name) else None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
