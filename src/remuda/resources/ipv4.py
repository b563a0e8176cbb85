"""Reading IPv4 addresses and prefixes as clients write them.

Python's own reader takes more than people mean: a prefix without a mask, a mask as an address, digits of other
scripts. Here a prefix is `address/length` and nothing else; bits behind the mask are dropped, as clients expect. Each
caller refuses in its own words, so the readers return None where there is nothing to read. IPv6 is not spoken, and is
told apart only so that a refusal can say so.
"""

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network

from remuda.kernel.errors import Malformed

IPV6_HINT = "IPv6 is not supported"
"""What is added to a refusal when somebody sent IPv6."""

_PREFIX = re.compile(r"[0-9.]+/(0|[1-9][0-9]?)")


def read_address(text: str) -> IPv4Address | None:
    """Return the IPv4 address, or None where the text is none."""
    try:
        return IPv4Address(text)
    except ValueError:
        return None


def read_prefix(text: str) -> IPv4Network | None:
    """Return the IPv4 prefix without its host bits, or None where the text is none."""
    if not _PREFIX.fullmatch(text):
        return None
    try:
        return IPv4Network(text, strict=False)
    except ValueError:
        return None


def is_ipv6(text: str) -> bool:
    """Tell whether the text is an IPv6 address or prefix."""
    try:
        return ipaddress.ip_interface(text).version == 6  # noqa: PLR2004  the number is the name
    except ValueError:
        return False


def address_or_refuse(text: str, refusal: str) -> IPv4Address:
    """Return the IPv4 address, or raise Malformed with the refusal's words."""
    address = read_address(text)
    if address is None:
        raise Malformed(hinted(refusal, text))
    return address


def prefix_or_refuse(text: str, refusal: str) -> IPv4Network:
    """Return the IPv4 prefix, or raise Malformed with the refusal's words."""
    prefix = read_prefix(text)
    if prefix is None:
        raise Malformed(hinted(refusal, text))
    return prefix


def hinted(refusal: str, text: str) -> str:
    """Return the refusal of a text, which says so if that is IPv6."""
    return f"{refusal}, {IPV6_HINT}" if is_ipv6(text) else refusal
