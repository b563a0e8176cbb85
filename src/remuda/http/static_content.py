"""Static content: documents and scripts that are the same for every client as long as the process runs.

It is compressed once, when a client first accepts that. Each coding has its ETag, and a client that has the content
already gets 304. All responses share its bytes.
"""

import gzip
import hashlib
from collections.abc import Mapping

from remuda.http.negotiation import accepts_gzip
from remuda.http.responses import Header, Response, is_match

_COMPRESSION_LEVEL = 6
_VARIES: Header = (b"vary", b"accept-encoding")
_COMPRESSED: Header = (b"content-encoding", b"gzip")


class StaticContent:
    """One document, as it is sent with and without compression."""

    def __init__(self, content: bytes, headers: tuple[Header, ...]) -> None:
        """Take the headers of the response, with the content type."""
        digest = hashlib.sha256(content).hexdigest()[:32].encode()
        etag = b"etag", b'"%b"' % digest
        self._plain = Response(200, content, (*headers, _VARIES, etag))
        self._etag_compressed = b"etag", b'"%b-gzip"' % digest
        self._headers = headers
        self._compressed: Response | None = None

    def response(self, headers: Mapping[bytes, bytes]) -> Response:
        """Return the response to a request with these headers."""
        response = self._compress() if accepts_gzip(headers) else self._plain
        etag = next(value for name, value in response.headers if name == b"etag")
        sent = headers.get(b"if-none-match")
        if sent is None or not is_match(sent, etag):
            return response
        kept = [header for header in response.headers if header[0] not in {b"content-type", b"content-encoding"}]
        return Response(304, b"", tuple(kept))

    def _compress(self) -> Response:
        if self._compressed is None:
            assert isinstance(self._plain.body, bytes)
            body = gzip.compress(self._plain.body, _COMPRESSION_LEVEL, mtime=0)
            self._compressed = Response(200, body, (*self._headers, _VARIES, _COMPRESSED, self._etag_compressed))
        return self._compressed
