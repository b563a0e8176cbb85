"""Addresses as they are typed: what is none is refused before anybody is asked.

The words of the API are those that its clients know, and name no option.
"""

from ipaddress import IPv4Network

from remuda.kernel.errors import Invalid
from remuda.resources.ipv4 import hinted, read_address, read_prefix


def checked_prefix(option: str, text: str) -> IPv4Network:
    """Return a prefix, or refuse what is none."""
    prefix = read_prefix(text)
    if prefix is None:
        raise Invalid(option, hinted(f"{text} is no IPv4 prefix", text), remedy="write one such as 10.0.0.0/24")
    return prefix


def check_address(option: str, text: str) -> None:
    """Refuse what is no address."""
    if read_address(text) is None:
        raise Invalid(option, hinted(f"{text} is no IPv4 address", text), remedy="write one such as 10.0.0.1")
