"""Requests and responses as the documentation shows them, checked against a running identity.

A block of a page is a conversation, line by line::

    # somebody does something                        a stage direction: see `STAGE` of whoever plays it
    PUT /api/v1/things/$thing?colour=bay             a request: its method and path,
        &size=7                                      of which there may be more on the next lines,
    Idempotency-Key: seven                           its headers,
    {"name": "a"}                                    and its body: JSON, or a form with a field on each line

    200                                              the answer: its status,
    ETag: "…"                                        those of its headers that matter,
    {"id": "$id", "name": "a", …}                    and its JSON

`…` is anything, at the end of an object or a list any number of members. `$name` in an answer is anything, too, the
first time: from then on it is what was there.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply

_REQUEST = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (\S+)")
_STATUS = re.compile(r"\d{3}")
_HEADER = re.compile(r"([A-Za-z][\w-]*): (.+)")
_FIELD = re.compile(r"(\w+)=(.*)")
_NAME = re.compile(r"\$([a-z_]+)")
_HOLE = re.compile(r"…|\$[a-z_]+")
_REST = re.compile(r"…(?=\s*([}\]]))")


@dataclass
class Conversation:
    """A page's requests, sent one after the other."""

    client: Client
    known: dict[str, str]
    """What `$names` stand for."""
    stage: Mapping[str, "Direction"] = field(default_factory=dict)
    """What somebody does, by how the page says it."""
    target: str = ""
    """What was asked for last."""
    reply: Reply | None = None

    async def hold(self, block: str) -> None:
        """Send what a block shows, and compare what comes back."""
        paragraphs: list[list[str]] = [[]]
        for line in block.splitlines():
            if not line or line.startswith("# "):
                paragraphs.append([line] if line else [])
            elif _REQUEST.fullmatch(line) or _STATUS.fullmatch(line):
                paragraphs.append([line])
            else:
                paragraphs[-1].append(line)
        for lines in filter(None, paragraphs):
            await self._act(lines)

    async def _act(self, lines: list[str]) -> None:
        first = lines[0]
        if first.startswith("# "):
            self.reply = await self.stage[first.removeprefix("# ")](self) or self.reply
        elif found := _REQUEST.fullmatch(first):
            await self._send(found[1], found[2], lines[1:])
        else:
            assert _STATUS.fullmatch(first), f"neither a request nor an answer: {lines}"
            self._compare(int(first), lines[1:])

    async def _send(self, method: str, target: str, lines: Sequence[str]) -> None:
        more = [line.strip() for line in lines if line.startswith("    &")]
        headers = headers_of(lines)
        rest = [line for line in lines if not _HEADER.fullmatch(line) and not line.startswith("    &")]
        fields = [(found[1], found[2]) for line in rest if (found := _FIELD.fullmatch(line))]
        self.target = self._filled("".join([target, *more]))
        parts = urlsplit(self.target)
        self.reply = await self.client.send(
            method,
            parts.path,
            query=parse_qsl(parts.query, keep_blank_values=True),
            headers={name: self._filled(value) for name, value in headers.items()},
            form=[(name, self._filled(value)) for name, value in fields] if fields else None,
            body=self._filled("\n".join(rest)).encode() if rest and not fields else None,
        )

    def _filled(self, text: str) -> str:
        return _NAME.sub(lambda name: self.known[name[1]], text)

    def _compare(self, status: int, lines: Sequence[str]) -> None:
        reply = self.reply
        assert reply is not None, "somebody asked"
        assert reply.status == status, (reply.status, reply.body.decode())
        headers = headers_of(lines)
        for name, shown in headers.items():
            self._same(shown, reply.headers[name.lower()], name)
        text = "\n".join(line for line in lines if not _HEADER.fullmatch(line))
        if text:
            self._same(read(text), reply.json, "")
        else:
            assert not reply.body, "an answer that has a body is shown with it"

    def _same(self, shown: Any, told: Any, place: str) -> None:
        """Compare what is shown with what was told, and learn what it names."""
        if isinstance(shown, dict) and isinstance(told, dict):
            missing = shown.keys() - {"…"} - told.keys()
            assert not missing, f"{place}: {sorted(missing)} is not there: {told}"
            assert "…" in shown or shown.keys() == told.keys(), f"{place}: shows less than {told}"
            for name in shown.keys() - {"…"}:
                self._same(shown[name], told[name], f"{place}/{name}")
        elif isinstance(shown, list) and isinstance(told, list):
            whole = shown[-1:] != ["…"]
            begins = shown if whole else shown[:-1]
            assert len(begins) == len(told) if whole else len(begins) <= len(told), f"{place}: {told}"
            for number, (one, other) in enumerate(zip(begins, told, strict=False)):
                self._same(one, other, f"{place}/{number}")
        elif isinstance(shown, str) and isinstance(told, str):
            self._learn(shown, told, place)
        else:
            assert shown == told, f"{place}: {shown!r} is {told!r}"

    def _learn(self, shown: str, told: str, place: str) -> None:
        pattern, names = "", list[str]()
        for piece, hole in zip(_HOLE.split(shown), [*_HOLE.findall(shown), ""], strict=True):
            pattern += re.escape(piece)
            if hole.removeprefix("$") in self.known:
                pattern += re.escape(self.known[hole.removeprefix("$")])
            elif hole == "…":
                pattern += ".*"
            elif hole:
                pattern += "([^&]+)"
                names.append(hole.removeprefix("$"))
        found = re.fullmatch(pattern, told, re.DOTALL)
        assert found, f"{place}: {shown!r} is {told!r}"
        self.known.update(zip(names, found.groups(), strict=True))


Direction = Callable[[Conversation], Awaitable[Reply | None]]
"""Plays what a page says that somebody does; what it returns is what the page then shows."""


def headers_of(lines: Sequence[str]) -> dict[str, str]:
    """Return those lines that are headers."""
    return {found[1]: found[2] for line in lines if (found := _HEADER.fullmatch(line))}


def read(text: str) -> Any:
    """Return the JSON that a page shows."""
    return json.loads(_REST.sub(lambda rest: '"…": 0' if rest[1] == "}" else '"…"', text))
