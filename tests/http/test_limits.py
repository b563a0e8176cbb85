import asyncio
from collections.abc import Sequence

import pytest

from remuda.http.asgi import ClientDisconnect, Message, Receive
from remuda.http.request import read_body
from remuda.http.responses import Header
from remuda.kernel.errors import Malformed, TooLarge, TooSlow
from remuda.kernel.time_limits import TimeLimits

LEFT: Message = {"type": "http.disconnect"}


def part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


class Sender:
    """Delivers its messages, then nothing any more."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)

    async def __call__(self) -> Message:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)


async def read(receive: Receive, *, headers: Sequence[Header] = (), limit: int = 10, timeout_s: float = 5) -> bytes:
    return await read_body(receive, headers, limit=limit, limits=TimeLimits(timeout_s))


async def test_a_body_is_built_from_its_parts() -> None:
    assert await read(Sender(part(b"12345"), part(b""), part(b"67890", more=False))) == b"1234567890"
    assert await read(Sender(part(b"1", more=False))) == b"1"
    assert await read(Sender({"type": "http.request"})) == b""


async def test_a_body_that_announces_too_much_is_refused_unread() -> None:
    sender = Sender(part(b"1"))
    with pytest.raises(TooLarge, match="The body is longer than the limit of 10 bytes: send a smaller one"):
        await read(sender, headers=[(b"host", b"here"), (b"content-length", b"11")])
    assert sender.messages, "nothing was read"


async def test_a_body_that_announces_nothing_is_refused_when_it_is_past_the_limit() -> None:
    sender = Sender(part(b"12345"), part(b"678901"), part(b"2"))
    with pytest.raises(TooLarge):
        await read(sender)
    assert sender.messages == [part(b"2")]


async def test_a_body_that_lies_about_its_length_is_counted_all_the_same() -> None:
    with pytest.raises(TooLarge):
        await read(Sender(part(b"12345678901", more=False)), headers=[(b"content-length", b"1")])


@pytest.mark.parametrize("length", [b"-1", b"ten", b"1.5", b"", b"9" * 4_301, "\uff11".encode()])
async def test_a_length_that_is_no_number_is_malformed(length: bytes) -> None:
    with pytest.raises(Malformed, match="Content-Length"):
        await read(Sender(part(b"", more=False)), headers=[(b"content-length", length)])


async def test_a_body_that_does_not_come_is_too_slow() -> None:
    with pytest.raises(TooSlow, match=r"did not arrive within 0\.01 s"):
        await read(Sender(part(b"1")), timeout_s=0.01)


async def test_a_client_that_leaves_is_told_apart_from_one_that_is_done() -> None:
    with pytest.raises(ClientDisconnect):
        await read(Sender(part(b"1"), LEFT))
