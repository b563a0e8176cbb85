"""Every answer is held against the API's own document: status, content type, headers and body.

What the document does not list is not allowed either: an unknown path, a method that a path does not have, a preflight
and the pages of the API itself have one form each, wherever they are. HEAD is GET without the body. A stream is
validated twice: when it begins, and event by event. A page must be one, and must say what keeps it safe; a redirect
leads somewhere; what must not be kept says so.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from remuda.http.openapi import document
from remuda.http.routes import Table
from remuda.http.sse import Received

Document = Mapping[str, Any]
"""An OpenAPI document, as plain JSON."""

STREAM = "text/event-stream"
PAGES: Mapping[str, str] = {"/openapi.json": "application/json", "/docs": "text/html"}
"""What every API has beside its routes, and of which type it is."""

_ROOTS = frozenset({"", "/"})
"""The place where an API is mounted, which leads to its docs."""
_PARAMETER = re.compile(r"\{[^{}/]+\}")
_EVERYWHERE = frozenset({"connection", "content-length", "content-type", "date", "server", "transfer-encoding"})
"""Headers that are HTTP's own and need no document."""
_PREFLIGHT = {"access-control-allow-methods", "access-control-allow-headers", "access-control-max-age"}
_OF_PAGES = {
    "content-security-policy": "default-src 'none'",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
"""What every page says, at least."""
_LIMITED = frozenset({"ratelimit", "ratelimit-policy", "retry-after"})
"""Headers of everything that takes a rate limit."""
_ITEMS = frozenset({"added", "modified", "deleted"})
"""Events that tell of an item; all others have a remark."""


class UndocumentedError(AssertionError):
    """An answer is not what the documents say."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()
    """Every `Set-Cookie`; among the headers there is one of them."""

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)

    @property
    def media(self) -> str:
        """The type of the body."""
        return self.headers.get("content-type", "").partition(";")[0]


class Contract:
    """Validates answers by an OpenAPI document: status, content type, headers and body."""

    def __init__(self, document: Document, pages: Mapping[str, str] = PAGES) -> None:
        self._document, self._pages = document, pages
        self._paths = [(_pattern(path), path) for path in document["paths"]]
        self._headers = {name.lower() for name in document["components"]["headers"]}
        self._validators: dict[str, Any] = {}
        self._templates: dict[str, str | None] = {}

    def check(self, method: str, path: str, reply: Reply) -> None:
        """Raise UndocumentedError unless the documents say that this answer can come; of a stream, how it begins."""
        if method == "HEAD":
            _demand(not reply.body, f"HEAD {path} has a body")
        operation = self._operation(method, path)
        place = f"{method} {self._template(path) or path} {reply.status}"
        if operation is None:
            self._check_unlisted(place, method, path, reply)
            return
        documented = operation["responses"].get(str(reply.status))
        _demand(documented is not None, f"{place} is not documented")
        self._check_headers(place, self._resolved(documented), reply)
        self._check_body(place, self._resolved(documented), reply, has_body=method != "HEAD")
        _check_manners(place, self._resolved(documented), reply)

    def check_event(self, path: str, event: Received) -> None:
        """Raise UndocumentedError unless the documents say that this event can come in the stream at a path."""
        operation, place = self._operation("GET", path), f"{self._template(path)} {event.type}"
        assert operation is not None, f"{path} has no stream: its beginning was validated"
        content = self._resolved(operation["responses"]["200"])["content"]
        told = {"event": event.type, "data": event.data.decode()} | ({} if event.id is None else {"id": event.id})
        self._check_json(f"{place} event", content[STREAM]["schema"], told)
        data = msgspec.json.decode(event.data)
        if event.type not in _ITEMS:
            _demand(isinstance(data, dict), f"{place} has no remark: {data}")
            return
        self._check_json(place, self._resolved(content["application/json"]["schema"])["items"], data)

    def _check_unlisted(self, place: str, method: str, path: str, reply: Reply) -> None:
        allowed, is_root = {*self._headers, *_LIMITED}, path in _ROOTS
        is_known = self._template(path) is not None or path in self._pages or is_root
        if method == "OPTIONS" and is_known and reply.status == 204:
            _demand(not reply.body, f"{place} has a body")
            allowed |= _PREFLIGHT
        elif is_root and reply.status == 307:
            _demand(not reply.body, f"{place} has a body")
            allowed |= {"location"}
        elif not is_known and reply.status == 404 and reply.media == "text/html":
            _check_manners(place, {}, reply)
            allowed |= _OF_PAGES.keys()
        elif path in self._pages and reply.status in {200, 304}:
            _demand(reply.media == self._pages[path] or not reply.body, f"{place} is {reply.media}")
            allowed |= {"content-security-policy", "etag", "vary", "content-encoding"}
        else:
            can_be = {400, 405, 429} if is_known else {400, 404, 429}
            _demand(reply.status in can_be, f"{place} is in no document")
            _demand(reply.status != 405 or "allow" in reply.headers, f"{place} does not say what is allowed")
            _demand(reply.media == "application/json", f"{place} is {reply.media}")
            if method != "HEAD":
                name = "OtherErrorBody" if reply.status == 429 else "ErrorBody"
                self._check_json(f"error {place}", {"$ref": f"#/components/schemas/{name}"}, reply.json)
        _only(allowed, place, reply)

    def _check_headers(self, place: str, documented: Document, reply: Reply) -> None:
        known = {name.lower(): self._resolved(header) for name, header in documented.get("headers", {}).items()}
        for name, header in known.items():
            _demand(name in reply.headers or not header.get("required", False), f"{place} lacks the header {name}")
        _only(known.keys(), place, reply)

    def _check_body(self, place: str, documented: Document, reply: Reply, *, has_body: bool) -> None:
        content, media = documented.get("content", {}), reply.media
        if not content:
            _demand(not reply.body, f"{place} has a body and none is documented")
            return
        _demand(media in content, f"{place} is {media or 'nothing'}, documented is {sorted(content)}")
        if media == "application/json" and has_body:
            self._check_json(place, content[media]["schema"], reply.json)
        if media == "text/html" and has_body:
            _demand(reply.body.startswith(b"<!doctype html>"), f"{place} is no page")

    def _check_json(self, place: str, schema: Document, value: Any) -> None:
        if place not in self._validators:
            # The schema's references begin at the document's root, so its components come along.
            whole = {**schema, "components": self._document["components"]}
            self._validators[place] = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
        problems = [str(error) for error in self._validators[place].iter_errors(value)]
        _demand(not problems, f"{place}: {'; '.join(problems)}")

    def _resolved(self, node: Document) -> Document:
        while "$ref" in node:
            target: Any = self._document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def _operation(self, method: str, path: str) -> Any:
        template = self._template(path)
        item = {} if template is None else self._document["paths"][template]
        return item.get("get" if method == "HEAD" else method.lower())

    def _template(self, path: str) -> str | None:
        if path not in self._templates:
            fitting = [template for pattern, template in self._paths if pattern.fullmatch(path)]
            self._templates[path] = min(fitting, key=lambda template: template.count("{"), default=None)
        return self._templates[path]


@lru_cache(maxsize=16)
def contract_of(table: Table) -> Contract:
    """Return what every answer of an API is held against."""
    return _contract(msgspec.json.encode(document(table, version="0")))


@cache
def _contract(told: bytes) -> Contract:
    """Compare by content: tests make their tables again, and each contract keeps many validators."""
    return Contract(msgspec.json.decode(told))


def _pattern(template: str) -> re.Pattern[str]:
    fixed = [re.escape(part) for part in _PARAMETER.split(template)]
    return re.compile("[^/]*".join(fixed))


def _check_manners(place: str, documented: Document, reply: Reply) -> None:
    """Demand what pages, redirects and answers that nobody may keep owe to whoever gets them."""
    if reply.media == "text/html":
        for name, least in _OF_PAGES.items():
            _demand(least in reply.headers.get(name, ""), f"{place} is a page without {name}: {least}")
    if reply.status == 302:
        _demand(reply.headers.get("location", "") != "", f"{place} leads nowhere")
    if "Pragma" in documented.get("headers", {}):
        _demand(reply.headers.get("cache-control") == "no-store", f"{place} may be kept")


def _only(known: Iterable[str], place: str, reply: Reply) -> None:
    unknown = {*reply.headers} - _EVERYWHERE - {*known}
    _demand(not unknown, f"{place} has undocumented headers: {sorted(unknown)}")


def _demand(holds: bool, sentence: str) -> None:  # noqa: FBT001  reads as an assertion
    if not holds:
        raise UndocumentedError(sentence)
