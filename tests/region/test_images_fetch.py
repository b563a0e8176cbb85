"""Looking at an image and reading it from an address that a user gives: over real sockets."""

import asyncio
import hashlib
from collections.abc import Callable

import pytest

from remuda.kernel.errors import Invalid, Malformed, RemudaError, Unavailable
from remuda.outbound.addresses import AddressPolicy
from remuda.outbound.fetch import FetchTimeouts, GuardedFetcher
from remuda.region.images.transfer import ImageFetcher, ImageHeader, ImageLimits
from tests.kit.outbound_servers import HERE, Answer, Names, redirecting, saying, serving

ORG, OTHER_ORG = "org-1", "org-2"
SECTOR = b"\xfa" * 510 + b"\x55\xaa"
DISK = SECTOR + bytes(range(256)) * 4096
UNREADABLE = "Image read failed, please ensure the URL is correct"
STATUS = "Image read failed with an incorrect status code, please ensure the URL is correct"
RANGE = "Unable to peek image header, incorrect response size for range"
SMALL = "Unable to peek image header, response too small"
MAGIC = "Image does not contain a valid master boot record, ensure the image is in raw format"
LONG = "The image is longer than 1049088 bytes: import a smaller one."


def fetcher(reach: AddressPolicy = HERE, stall_s: float = 30.0, **limits: float) -> ImageFetcher:
    guarded = GuardedFetcher(resolve=Names({}), reach=reach, timeouts=FetchTimeouts(stall_s=stall_s))
    return ImageFetcher(source=guarded, limits=ImageLimits(**limits))  # type: ignore[arg-type]  # limits by name


def partial(body: bytes, content_range: str = f"bytes 0-511/{len(DISK)}") -> Answer:
    return saying(body, status="206 Partial Content", headers=f"content-range: {content_range}\r\n")


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + SECTOR)
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def stalling(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + SECTOR[:100])
    await writer.drain()
    await asyncio.sleep(60)


async def hanging_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def going_on(writer: asyncio.StreamWriter) -> None:
    """Say that a part is a byte too long, and send that byte when the rest has surely been read."""
    head = "HTTP/1.1 206 Partial Content\r\ncontent-length: 513\r\ncontent-range: bytes 0-511/4096\r\n\r\n"
    writer.write(head.encode() + SECTOR)
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.write(b"x")


PEEKED: dict[str, tuple[Answer, int | None]] = {
    "the part that was asked for": (partial(SECTOR), len(DISK)),
    "a part of something whose length nobody knows": (partial(SECTOR, "bytes 0-511/*"), None),
    "everything": (saying(DISK), len(DISK)),
    "just enough": (saying(SECTOR), 512),
    "everything in small pieces": (saying(*(DISK[place : place + 7] for place in range(0, 700, 7)), told=700), 700),
    "something without end": (endless, None),
}


@pytest.mark.parametrize(("answer", "length"), PEEKED.values(), ids=PEEKED)
async def test_a_look_tells_the_beginning_and_the_length(answer: Answer, length: int | None) -> None:
    async with serving(answer) as served:
        assert await fetcher().read_header(served.url(), ORG) == ImageHeader(SECTOR, length)
        assert b"\r\nrange: bytes=0-511\r\n" in served.asked[0].lower()


REFUSED: dict[str, tuple[Answer, type[RemudaError], str]] = {
    "nothing": (hanging_up, Invalid, UNREADABLE),
    "not found": (saying(SECTOR, status="404 Not Found"), Invalid, STATUS),
    "not now": (saying(SECTOR, status="503 Busy"), Invalid, STATUS),
    "no such range": (saying(status="416 Range Not Satisfiable"), Invalid, STATUS),
    "a redirect to nowhere": (saying(SECTOR, status="302 Found"), Invalid, STATUS),
    "unchanged": (saying(status="304 Not Modified"), Invalid, STATUS),
    "a part too small": (partial(SECTOR[:511]), Malformed, RANGE),
    "a part too large": (partial(SECTOR + b"x"), Malformed, RANGE),
    "a part that goes on": (going_on, Malformed, RANGE),
    "an empty part": (partial(b""), Malformed, RANGE),
    "another part": (partial(SECTOR, "bytes 512-1023/4096"), Malformed, RANGE),
    "a part of nothing said": (saying(SECTOR, status="206 Partial Content"), Malformed, RANGE),
    "a part of an absurd length": (partial(SECTOR, "bytes 0-511/" + "9" * 5000), Malformed, RANGE),
    "too little": (saying(SECTOR[:511]), Invalid, SMALL),
    "nothing at all": (saying(status="204 No Content"), Invalid, SMALL),
    "less than it says": (saying(SECTOR[:100], told=512), Invalid, UNREADABLE),
    "more than it says": (saying(SECTOR, told=500), Invalid, SMALL),
    "another format": (saying(b"QFI\xfb".ljust(1024, b"\0")), Invalid, MAGIC),
    "the mark elsewhere": (saying(SECTOR[2:] + b"\0" * 512), Invalid, MAGIC),
    "the mark backwards": (partial(SECTOR[:510] + b"\xaa\x55"), Invalid, MAGIC),
    "something packed": (saying(b"\x1f\x8b" * 512, headers="content-encoding: gzip\r\n"), Invalid, MAGIC),
    "a redirect inside": (redirecting("http://10.0.0.1/secret"), Invalid, UNREADABLE),
    "a redirect in a circle": (redirecting("/disk.raw"), Invalid, UNREADABLE),
}


@pytest.mark.parametrize(("answer", "kind", "sentence"), REFUSED.values(), ids=REFUSED)
async def test_a_look_at_anything_else_is_refused(answer: Answer, kind: type[RemudaError], sentence: str) -> None:
    async with serving(answer) as served:
        with pytest.raises(kind) as refused:
            await fetcher().read_header(served.url(), ORG)
        assert refused.value.message == sentence


async def test_what_may_not_be_asked_for_is_refused_in_the_same_words() -> None:
    async with serving(saying(DISK)) as served:
        guarded = fetcher(AddressPolicy())
        for url in (served.url(), "ftp://images.example/", served.url("user@127.0.0.1"), "http://nowhere.example/"):
            with pytest.raises(Invalid) as refused:
                await guarded.read_header(url, ORG)
            assert refused.value.message == UNREADABLE
        assert served.asked == []


async def test_a_look_at_an_image_that_is_too_long_is_refused() -> None:
    for answer in (partial(SECTOR, "bytes 0-511/1049089"), saying(DISK + b"x")):
        async with serving(answer) as served:
            with pytest.raises(Invalid) as refused:
                await fetcher(max_bytes=1049088).read_header(served.url(), ORG)
            assert refused.value.message == LONG
    async with serving(partial(SECTOR)) as served:
        assert (await fetcher(max_bytes=len(DISK)).read_header(served.url(), ORG)).length == len(DISK)


async def test_a_look_does_not_take_for_ever() -> None:
    async with serving(stalling) as served:
        for limited in (fetcher(header_s=0.1), fetcher(stall_s=0.1)):
            with pytest.raises(Invalid) as refused:
                await limited.read_header(served.url(), ORG)
            assert refused.value.message == UNREADABLE


async def test_m27_slow_servers_of_one_organization_do_not_keep_another_from_a_look() -> None:
    asked = asyncio.Semaphore(0)

    async def silent(_: asyncio.StreamWriter) -> None:
        asked.release()
        await asyncio.sleep(600)

    async with serving(silent) as stalled, serving(saying(DISK)) as served:
        images = fetcher(header_s=300.0, stall_s=300.0)
        looks = [asyncio.create_task(images.read_header(stalled.url(), ORG)) for _ in range(40)]
        async with asyncio.timeout(120):
            for _ in range(8):
                await asked.acquire()
        assert images.slots.waiting == 32
        assert (await images.read_header(served.url(), OTHER_ORG)).head == SECTOR
        assert len(stalled.asked) == 8
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)
        assert images.slots.is_idle


async def test_a_look_waits_for_others_of_its_organization_within_its_time() -> None:
    async with serving(saying(DISK)) as served:
        images = fetcher(header_s=0.1)
        for _ in range(8):
            await images.slots.take(ORG)
        with pytest.raises(Unavailable, match="Retry in a minute"):
            await images.read_header(served.url(), ORG)
        assert images.slots.waiting == 0
        assert served.asked == []


async def downloaded(images: ImageFetcher, url: str) -> tuple[bytes, str | None, int]:
    read = b""
    async with images.stream(url, ORG) as download:
        assert download.sha256 is None
        async for chunk in download:
            read += chunk
        return read, download.sha256, download.length


CHOPPED: list[Callable[[bytes], list[bytes]]] = [
    lambda disk: [disk],
    lambda disk: [disk[:1], disk[1:511], disk[511:512], disk[512:]],
    lambda disk: [disk[:700], disk[700:]],
]


@pytest.mark.parametrize("chopped", CHOPPED)
async def test_an_image_is_read_in_whole_and_its_digest_told(chopped: Callable[[bytes], list[bytes]]) -> None:
    async with serving(saying(*chopped(DISK))) as served:
        digest = hashlib.sha256(DISK).hexdigest()
        assert await downloaded(fetcher(), served.url()) == (DISK, digest, len(DISK))
        assert b"range:" not in served.asked[0].lower()


async def test_no_byte_is_given_before_the_beginning_is_whole_and_checked() -> None:
    async with (
        serving(saying(*(bytes([each]) for each in SECTOR))) as served,
        fetcher().stream(served.url(), ORG) as download,
    ):
        assert [chunk async for chunk in download] == [SECTOR]


FINAL: dict[str, tuple[Answer, str]] = {
    "not found": (saying(SECTOR, status="404 Not Found"), STATUS),
    "a part that nobody asked for": (partial(SECTOR), STATUS),
    "forbidden": (saying(SECTOR, status="403 Forbidden"), STATUS),
    "another format than at the first look": (saying(b"\0" * 4096), MAGIC),
    "too little": (saying(SECTOR[:-1]), SMALL),
    "nothing": (saying(), SMALL),
    "a redirect inside": (redirecting("http://169.254.169.254/"), UNREADABLE),
    "more than allowed": (saying(DISK + b"x"), LONG),
    "more than allowed as it says": (saying(SECTOR, told=1049089), LONG),
    "more than allowed without saying so": (endless, LONG),
}


@pytest.mark.parametrize(("answer", "sentence"), FINAL.values(), ids=FINAL)
async def test_reading_ends_for_good(answer: Answer, sentence: str) -> None:
    async with serving(answer) as served:
        with pytest.raises(Invalid) as refused:
            await downloaded(fetcher(max_bytes=1049088), served.url())
        assert refused.value.message == sentence


PASSING: dict[str, tuple[Answer, str]] = {
    "nothing": (hanging_up, UNREADABLE),
    "not now": (saying(status="503 Busy"), STATUS),
    "too many": (saying(status="429 Too Many Requests"), STATUS),
    "broken off": (saying(DISK[:-1], told=len(DISK)), UNREADABLE),
    "broken off at the beginning": (saying(SECTOR[:100], told=512), UNREADABLE),
}


@pytest.mark.parametrize(("answer", "sentence"), PASSING.values(), ids=PASSING)
async def test_reading_may_be_tried_again(answer: Answer, sentence: str) -> None:
    async with serving(answer) as served:
        with pytest.raises(Unavailable) as refused:
            await downloaded(fetcher(), served.url())
        assert (refused.value.message, refused.value.retry) == (sentence, True)


async def test_reading_does_not_take_for_ever() -> None:
    async with serving(stalling) as stopped, serving(endless) as unending:
        for url, limited in ((stopped.url(), fetcher(stall_s=0.1)), (unending.url(), fetcher(total_s=0.2))):
            with pytest.raises(Unavailable) as refused:
                await downloaded(limited, url)
            assert refused.value.message == UNREADABLE


async def _written_to_a_full_disk(url: str) -> None:
    async with fetcher().stream(url, ORG) as download:
        async for _ in download:
            raise OSError("disk full")


async def test_what_fails_where_the_bytes_go_is_not_told_as_the_servers_fault() -> None:
    async with serving(saying(DISK)) as served:
        with pytest.raises(OSError, match="disk full"):
            await _written_to_a_full_disk(served.url())


def test_limits_are_those_that_are_documented() -> None:
    assert ImageLimits() == ImageLimits(max_bytes=30 * 2**30, header_s=15, total_s=7200)
