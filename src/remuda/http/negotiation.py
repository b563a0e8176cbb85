"""Content negotiation: the values of headers such as `Accept`, and whether a client accepts compressed content."""

from collections.abc import Mapping

_MOST = 64


def qualities(header: bytes) -> Mapping[str, float]:
    """Return the best quality of the first values in a header such as `Accept`; one that is not a number is 0."""
    found: dict[str, float] = {}
    for item in header.decode("latin-1").lower().split(",", _MOST)[:_MOST]:
        value, *parameters = (part.strip() for part in item.split(";", _MOST)[:_MOST])
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        found[value] = max(found.get(value, 0.0), _number(quality))
    return found


def accepts_gzip(headers: Mapping[bytes, bytes]) -> bool:
    codings = qualities(headers.get(b"accept-encoding", b""))
    return codings.get("gzip", codings.get("*", 0.0)) > 0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
