"""Pages for browsers, and sending a browser elsewhere.

No page may be kept, shown inside another one, or tell where its reader goes from it, and by itself it loads nothing but
its own styles and sends its forms here. A page that needs more says so in its own headers, which go first. A browser
holds `form-action` also against the place that a form's answer redirects to: the page of a form that may lead to a
client's address must name that address in a `Content-Security-Policy` of its own.

What goes wrong on the way to a page is a page, too: what happened, what to do, and the trace id. A program that asks
for JSON, and not for HTML, gets the error that every other route gives.

Addresses that browsers are sent to.
"""

from collections.abc import Mapping
from functools import cache
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from remuda.http.errors import Refused, answer_to, description_of
from remuda.http.responses import HTML, Answer, Header, Page, Redirect, wire_headers

PAGE_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What every page says, unless it says otherwise itself."""

_FOUND, _OURS = 302, 500
_IN_A_URL = "!#$%&'()*+,-./:;=?@[]_~"


def answer_page(reply: Page | Redirect) -> Answer:
    """Return a page, or where a browser is sent, as it goes to the wire."""
    if isinstance(reply, Redirect):
        return answer_redirect(reply)
    return Answer(reply.status, reply.html.encode(), (HTML, *_headers(reply.headers, reply.cookies)))


def answer_redirect(reply: Redirect) -> Answer:
    """Return where a browser is sent. What a URL cannot hold is percent-encoded; an end of line is a defect."""
    wire_headers({"Location": reply.location})
    location = quote(reply.location, safe=_IN_A_URL).encode()
    return Answer(_FOUND, b"", ((b"location", location), *_headers(reply.headers, reply.cookies)))


def refuse_with_page(error: Exception, refused: Refused) -> Answer:
    """Return what a browser shows of an error, or the error as JSON to a program that asks for that."""
    told = answer_to(error, trace_id=refused.trace_id, url=refused.url)
    accepted = refused.headers.get(b"accept", b"")
    if b"application/json" in accepted and b"text/html" not in accepted:
        return told
    is_ours = told.status >= _OURS
    html = _template().render(
        title="Something went wrong on our side" if is_ours else "This did not work",
        description=description_of(error),
        remedy="Try again a little later." if is_ours else "",
        trace_id=refused.trace_id,
    )
    kept = [header for header in told.headers if header[0] not in {b"content-type", b"cache-control"}]
    return Answer(told.status, html.encode(), (HTML, *kept, *_headers({}, ())))


def _headers(own: Mapping[str, str], cookies: tuple[str, ...]) -> list[Header]:
    named = {name.lower() for name in own}
    common = {name: value for name, value in PAGE_HEADERS.items() if name.lower() not in named}
    set_cookies = [header for cookie in cookies for header in wire_headers({"Set-Cookie": cookie})]
    return [*wire_headers(common), *wire_headers(own), *set_cookies]


@cache
def _template() -> Template:
    environment = Environment(loader=PackageLoader("remuda.http"), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("error.html")


def with_query(url: str, parameters: Mapping[str, str]) -> str:
    """Return an address with these parameters besides those that it has already."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"
