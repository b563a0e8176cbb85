"""Where a client may have browsers sent: to addresses that it has registered, compared as a whole, letter by letter.

Only a program on the user's own machine cannot know its port in advance (RFC 8252): where it has registered a loopback
address without a port, any port will do.
"""

from urllib.parse import SplitResult, urlsplit

from remuda.identity.kinds.oauth import OAuth2Client
from remuda.kernel.errors import Invalid
from remuda.resources.crud import each_once

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_LONGEST = 2048


def redirects_of(client: OAuth2Client) -> tuple[str, ...]:
    """Return every address that a client has registered."""
    spec = client.spec
    return each_once(filter(None, (spec.redirect_uri, *spec.redirect_uris)))


def allows_redirect(client: OAuth2Client, uri: str) -> bool:
    """Tell whether browsers may be sent to this address for a client."""
    registered = redirects_of(client)
    return uri in registered or any(_is_same_but_for_port(each, uri) for each in registered)


def check_redirects(field: str, uris: tuple[str, ...]) -> None:
    """Raise Invalid unless all of these can be registered."""
    for uri in uris:
        parts = _split(uri)
        if parts is None or not parts.netloc or parts.username is not None or len(uri) > _LONGEST:
            raise Invalid(field, "has an address that is not absolute", remedy="write it out: https://host/path")
        if parts.fragment or "#" in uri or "*" in uri:
            raise Invalid(field, "has an address with '#' or '*'", remedy="write out each address, without a fragment")
        if parts.scheme != "https" and not _is_loopback(parts):
            raise Invalid(field, "has an address without TLS", remedy="use https, or http to 127.0.0.1 or [::1] alone")


def _is_same_but_for_port(registered: str, uri: str) -> bool:
    known, asked = _split(registered), _split(uri)
    if known is None or asked is None or not _is_loopback(known) or known.port is not None:
        return False
    host = f"[{known.hostname}]" if ":" in (known.hostname or "") else known.hostname
    return uri == registered.replace(f"//{known.netloc}", f"//{host}:{asked.port}", 1)


def _is_loopback(parts: SplitResult) -> bool:
    return parts.scheme == "http" and parts.hostname in _LOOPBACK


def _split(uri: str) -> SplitResult | None:
    """Return the parts of an address, or None where it has none that make sense."""
    if not uri.isascii() or not uri.isprintable() or " " in uri or "\\" in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises if it is no number
    except ValueError:
        return None
    return parts
