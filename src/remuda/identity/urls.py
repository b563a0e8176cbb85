"""Addresses that browsers are sent to."""

from collections.abc import Mapping
from urllib.parse import urlencode


def with_query(url: str, parameters: Mapping[str, str]) -> str:
    """Return an address with these parameters besides those that it has already."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"
