"""HTML pages and redirects.

No page may be stored, framed, or send a referrer. By default it loads nothing but its own styles and submits its forms
to its own origin. A page that needs more sets its own headers, which replace these. Browsers apply `form-action` also
to the redirect after a form, so the page of a form that may redirect to a client must name the client's address in its
own `Content-Security-Policy`.

An error on a page route is a page too, with the cause, the remedy and the trace id, unless the client accepts JSON and
not HTML. A path that does not exist is a page for clients that ask for HTML. All others get the usual error response.
"""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from remuda.http.errors import RejectedRequest, description_of, error_response
from remuda.http.responses import HTML, Header, HtmlPage, Redirect, Response, wire_headers
from remuda.kernel.errors import NotFound

PAGE_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every page, unless the page sets its own."""

_FOUND, _OURS = 302, 500
_IN_A_URL = "!#$%&'()*+,-./:;=?@[]_~"


def page_response(result: HtmlPage | Redirect) -> Response:
    if isinstance(result, Redirect):
        return redirect_response(result)
    return Response(result.status, result.html.encode(), (HTML, *_headers(result.headers, result.cookies)))


def redirect_response(result: Redirect) -> Response:
    """Return the response for a redirect. Invalid characters are percent-encoded; a line break is a defect."""
    wire_headers({"Location": result.location})
    location = quote(result.location, safe=_IN_A_URL).encode()
    return Response(_FOUND, b"", ((b"location", location), *_headers(result.headers, result.cookies)))


def reject_with_page(error: Exception, request: RejectedRequest) -> Response:
    """Return an error as a page, or as JSON to a client that asks for that."""
    response = error_response(error, trace_id=request.trace_id, url=request.url)
    accepted = request.headers.get(b"accept", b"")
    if b"application/json" in accepted and b"text/html" not in accepted:
        return response
    is_server_error = response.status >= _OURS
    html = _template("error.html").render(
        title="Something went wrong on our side" if is_server_error else "This did not work",
        description=description_of(error),
        remedy="Try again a little later." if is_server_error else "",
        trace_id=request.trace_id,
    )
    kept = [header for header in response.headers if header[0] not in {b"content-type", b"cache-control"}]
    return Response(response.status, html.encode(), (HTML, *kept, *_headers({}, ())))


def unknown_path(path: str, headers: Mapping[bytes, bytes], targets: Mapping[str, str], *, trace_id: str) -> Response:
    """Return the response for a path that does not exist: to browsers a page, with links to these, their texts by URL.

    A client that does not ask for HTML gets the usual error response.
    """
    if b"text/html" not in headers.get(b"accept", b""):
        return error_response(NotFound("path", path), trace_id=trace_id)
    html = _template("not_found.html").render(title="This page does not exist", targets=targets, trace_id=trace_id)
    return page_response(HtmlPage(html, status=HTTPStatus.NOT_FOUND))


def _headers(own: Mapping[str, str], cookies: tuple[str, ...]) -> list[Header]:
    named = {name.lower() for name in own}
    common = {name: value for name, value in PAGE_HEADERS.items() if name.lower() not in named}
    set_cookies = [header for cookie in cookies for header in wire_headers({"Set-Cookie": cookie})]
    return [*wire_headers(common), *wire_headers(own), *set_cookies]


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("remuda.http"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(name)


def with_query(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"
