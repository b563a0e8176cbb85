"""Every answer is held against the API's own document: status, content type, headers and body."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import msgspec

Document = Mapping[str, Any]
"""An OpenAPI document, as plain JSON."""

_PARAMETER = re.compile(r"\{[^{}/]+\}")
_EVERYWHERE = frozenset({"content-length", "content-type", "date", "server"})
"""Headers that are HTTP's own and need no document."""


class UndocumentedError(AssertionError):
    """An answer is not what the documents say."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


class Contract:
    """Judges answers by an OpenAPI document: status, content type, headers and body."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._paths = [(_pattern(path), path) for path in document["paths"]]
        self._validators: dict[str, Any] = {}

    def check(self, method: str, path: str, reply: Reply) -> None:
        """Raise UndocumentedError unless the documents say that this answer can come."""
        template = self._template(path)
        if template is None:
            _demand(reply.status == 404, f"{method} {path} is in no document and answered {reply.status}")
            return
        operation = self._document["paths"][template].get(method.lower())
        if operation is None:
            _demand(reply.status in {405, 204, 400}, f"{method} {template} answered {reply.status}")
            return
        place = f"{method} {template} {reply.status}"
        documented = operation["responses"].get(str(reply.status))
        _demand(documented is not None, f"{place} is not documented")
        self._check_headers(place, self._resolved(documented), reply)
        self._check_body(place, self._resolved(documented), reply)

    def _check_headers(self, place: str, documented: Document, reply: Reply) -> None:
        known = {name.lower(): self._resolved(header) for name, header in documented.get("headers", {}).items()}
        for name, header in known.items():
            _demand(name in reply.headers or not header.get("required", False), f"{place} lacks the header {name}")
        named = {name for name in reply.headers if name not in _EVERYWHERE}
        _demand(named <= known.keys(), f"{place} has undocumented headers: {sorted(named - known.keys())}")

    def _check_body(self, place: str, documented: Document, reply: Reply) -> None:
        content = documented.get("content", {})
        if not content:
            _demand(not reply.body, f"{place} has a body and none is documented")
            return
        media = reply.headers.get("content-type", "").partition(";")[0]
        _demand(media in content, f"{place} is {media or 'nothing'}, documented is {sorted(content)}")
        if media == "application/json":
            problems = [str(error) for error in self._validator(place, content[media]).iter_errors(reply.json)]
            _demand(not problems, f"{place}: {'; '.join(problems)}")

    def _validator(self, place: str, content: Document) -> Any:
        if place not in self._validators:
            # The schema's references begin at the document's root, so its components come along.
            schema = {**content["schema"], "components": self._document.get("components", {})}
            self._validators[place] = jsonschema_rs.Draft202012Validator(schema)
        return self._validators[place]

    def _resolved(self, node: Document) -> Document:
        while "$ref" in node:
            target: Any = self._document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def _template(self, path: str) -> str | None:
        fitting = [template for pattern, template in self._paths if pattern.fullmatch(path)]
        return min(fitting, key=lambda template: template.count("{"), default=None)


def _pattern(template: str) -> re.Pattern[str]:
    fixed = [re.escape(part) for part in _PARAMETER.split(template)]
    return re.compile("[^/]*".join(fixed))


def _demand(holds: bool, sentence: str) -> None:  # noqa: FBT001  reads as an assertion
    if not holds:
        raise UndocumentedError(sentence)
