"""Secrets to look for, wherever they could have got: in what is stored, logged, measured, told to somebody else.

A canary may be in the answers that must show it and in no other byte. `Canaries` keeps every answer that it sees.
"""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import structlog

from remuda.http.asgi import ASGIApp, Message, Receive, Scope, Send
from tests.kit.store.disguises import disguises


class Heard:
    """An app that keeps everything it answers, headers and all."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.answers: list[tuple[str, bytes]] = []
        """Method and path, and what was answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = bytearray()

        async def hear(message: Message) -> None:
            told.extend(b"\n".join(b": ".join(header) for header in message.get("headers", ())))
            told.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, hear)
        self.answers.append((f"{scope['method']} {scope['path']}", bytes(told)))


class Canaries:
    """The secrets of a test, each with the operations whose answers may show it."""

    def __init__(self) -> None:
        self._shown: dict[str, frozenset[str]] = {}

    def add(self, secret: str, *shown_by: str) -> str:
        """Look out for a secret, which only the answers of these operations may show; return it."""
        assert len(secret) >= 8, "what is too short is found by accident"
        self._shown[secret] = self._shown.get(secret, frozenset()) | {*shown_by}
        return secret

    def assert_heard(self, heard: Heard) -> None:
        """Fail unless every secret is in the answers that must show it, and in no other."""
        for secret, shown_by in self._shown.items():
            seen = {operation for operation, told in heard.answers if is_in(told, secret)}
            assert seen == shown_by, f"a secret is told by {sorted(seen)}, and is for {sorted(shown_by)}"

    def assert_unseen(self, where: str, content: bytes) -> None:
        """Fail if any of them is there."""
        for secret, shown_by in self._shown.items():
            assert not is_in(content, secret), f"a secret of {sorted(shown_by)} is in {where}"

    def assert_unstored(self, directory: Path, *, at_least: Iterable[str]) -> None:
        """Fail if any of them is in a file."""
        files = {path.name: path for path in directory.rglob("*") if path.is_file()}
        assert {*at_least} <= files.keys()
        for name, path in files.items():
            self.assert_unseen(name, path.read_bytes())


def looking_out(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[Canaries]:
    """Collect the secrets of a test, and look for them in all that was printed or logged: what a fixture yields."""
    canaries = Canaries()
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as events:
        yield canaries
    output = capfd.readouterr()
    canaries.assert_unseen("the log", repr(events).encode() + caplog.text.encode())
    canaries.assert_unseen("the output", (output.out + output.err).encode())


def is_in(content: bytes, secret: str) -> bool:
    """Tell whether a secret is there, in whichever form somebody might have written it."""
    return any(disguise in content for disguise in disguises(secret))
