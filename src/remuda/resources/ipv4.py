"""Parsers of IPv4 addresses and prefixes in requests.

Python's own parser accepts more: a prefix without a mask, a mask as an address, digits of other scripts. Here a prefix
is `address/length` and nothing else; host bits are dropped, as clients expect. Callers have different error messages,
so the parsers return None for an invalid text. IPv6 is not supported, and only detected for the error message.
"""

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network

from remuda.kernel.errors import Malformed

IPV6_HINT = "IPv6 is not supported"
"""The suffix of an error message about an IPv6 address."""

_PREFIX = re.compile(r"[0-9.]+/(0|[1-9][0-9]?)")


def find_address(text: str) -> IPv4Address | None:
    """Return the IPv4 address, or None if the text is not one."""
    try:
        return IPv4Address(text)
    except ValueError:
        return None


def find_prefix(text: str) -> IPv4Network | None:
    """Return the IPv4 prefix without its host bits, or None if the text is not one."""
    if not _PREFIX.fullmatch(text):
        return None
    try:
        return IPv4Network(text, strict=False)
    except ValueError:
        return None


def is_ipv6(text: str) -> bool:
    """Return whether the text is an IPv6 address or prefix."""
    try:
        return ipaddress.ip_interface(text).version == 6  # noqa: PLR2004  the number is the name
    except ValueError:
        return False


def parse_address(text: str, message: str) -> IPv4Address:
    """Return the IPv4 address, or raise Malformed with this message."""
    address = find_address(text)
    if address is None:
        raise Malformed(hinted(message, text))
    return address


def parse_prefix(text: str, message: str) -> IPv4Network:
    """Return the IPv4 prefix, or raise Malformed with this message."""
    prefix = find_prefix(text)
    if prefix is None:
        raise Malformed(hinted(message, text))
    return prefix


def hinted(message: str, text: str) -> str:
    """Return an error message about a text, with a hint if that is IPv6."""
    return f"{message}, {IPV6_HINT}" if is_ipv6(text) else message
