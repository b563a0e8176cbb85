"""Rules for the head of a request that the parser does not check: version, host, framing and path.

A proxy in front of this server may understand a head that breaks them as another request than the server does. So such
a head is rejected.
"""

import re
from collections.abc import Iterable

from remuda.http.responses import Header
from remuda.kernel.errors import Malformed
from remuda.kernel.percent_encoding import percent_decoded

_VERSIONS = ("1.1", "1.0")
_CHUNKED = b"chunked"
_CONTINUE = b"100-continue"
_ABSOLUTE = re.compile(rb"[^/?#]+://([^/?#]*)")


def check_head(version: str, target: bytes, headers: Iterable[Header]) -> bool:
    """Return whether the client waits for `100 Continue`, or raise Malformed."""
    host, hosts, encodings, expects_continue = b"", 0, 0, False
    for name, value in headers:
        if name == b"host":
            host = value
            hosts += 1
        elif name == b"transfer-encoding":
            encodings += 1
            if value.lower() != _CHUNKED:
                raise Malformed("The transfer encoding is not supported. Send chunked, or a Content-Length.")
        elif name == b"expect" and value.lower() == _CONTINUE:
            expects_continue = True
    if version not in _VERSIONS:
        raise Malformed("The version of HTTP is not supported. Send HTTP/1.1.")
    if hosts != 1 and (hosts or version != "1.0"):
        raise Malformed("An HTTP/1.1 request needs one Host header. Send exactly one.")
    if encodings > (version != "1.0"):
        raise Malformed("A request has one transfer encoding, and none in HTTP/1.0. Send chunked once in HTTP/1.1.")
    if hosts and (absolute := _ABSOLUTE.match(target)) and absolute[1].lower() != host.lower():
        raise Malformed("The URL of the request names another host than the Host header. Send the same.")
    return expects_continue


def decoded_path(path: bytes) -> str:
    """Return the decoded path, or raise Malformed if a percent sign begins no escape."""
    try:
        return percent_decoded(path).decode("utf-8", "replace")
    except ValueError:
        raise Malformed(
            "A percent sign of the path begins no escape. Send two hexadecimal digits after it, or %25 for the sign."
        ) from None
