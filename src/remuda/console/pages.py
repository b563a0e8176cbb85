"""The page, and what it loads: a script and styles of our own, and nothing else.

What somebody else wrote, such as the name of an instance, is text in it and never markup: the template escapes it, and
the script sets text only.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from remuda.http.responses import Answer, Page, wire_headers
from remuda.http.server.health import Mounted
from remuda.version import ServiceDescriptor

STREAM = "/console/instances"
"""Where the script follows the instances."""

_SCRIPT = "console.js"
_PLACE = f"/console/{_SCRIPT}"


class ConsolePages:
    """Renders the page."""

    def __init__(self, *, description: ServiceDescriptor, mounted: Sequence[Mounted], account: str) -> None:
        """Take where somebody logs in and out as `account`."""
        self._template = _environment().get_template("console.html")
        self._about = {"version": str(description), "mounted": mounted, "account": account}
        self._about |= {"script": _PLACE, "stream": STREAM}
        own = ("page.css", "console.css")
        styles = " ".join(f"'sha256-{_digest(_environment().get_template(name).render())}'" for name in own)
        self._policy = (
            f"default-src 'none'; script-src 'self'; connect-src 'self'; style-src {styles}; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )

    def front(self, *, known: str, problems: Sequence[tuple[str, str]], pages: Mapping[str, str]) -> Page:
        """Show the page to whoever is logged in, or to somebody who is not yet (`known` is empty then)."""
        standing = "Remuda is not ready" if problems else "Remuda is ready"
        title = "Your instances" if known else standing
        html = self._template.render(title=title, known=known, problems=problems, pages=pages, **self._about)
        return Page(html, headers={"Content-Security-Policy": self._policy})


def script() -> Answer:
    """Return the script. A browser asks for it each time, so that it never has one of an earlier release."""
    return _script()


@cache
def _script() -> Answer:
    content = files("remuda.console").joinpath("static", _SCRIPT).read_bytes()
    headers = {
        "Content-Type": "text/javascript; charset=utf-8",
        "Cache-Control": "no-cache",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return Answer(200, content, tuple(wire_headers(headers)))


def _digest(style: str) -> str:
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    own, shared = PackageLoader("remuda.console"), PackageLoader("remuda.http")
    return Environment(
        loader=ChoiceLoader([own, shared]),
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
