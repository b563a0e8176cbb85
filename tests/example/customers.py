"""Customers: they use the livery at random, through its API, and note what they were told."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from remuda.kernel.randomness import Randomness
from tests.example.authenticator import ORGANIZATION, PROJECT
from tests.example.book import Book
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply

YARDS = f"/api/v1/organizations/{ORGANIZATION}/projects/{PROJECT}/yards"
MOUNTS = "/api/v2/mounts"

NAMES = ("bella", "cloud", "duke")
PADDOCKS = ("home", "north", "south")
UNAVAILABLE = 503

T = TypeVar("T")


class Customer:
    """Does something at random, from what it has just read. A different client may be given for each act."""

    def __init__(self, book: Book, randomness: Randomness, client: Callable[[], Client]) -> None:
        self._book, self._randomness, self._client = book, randomness, client

    async def act(self) -> None:
        """Do one thing."""
        yards = await self._read(YARDS)
        mounts = await self._read(MOUNTS)
        if yards is None or mounts is None:
            return
        yard = self._one_of([each for each in yards if "deletionTime" not in each["metadata"]])
        mount = self._one_of(mounts)
        if yard is None or (len(yards) < 2 and self._chance(0.2)):
            await self._make_yard()
        elif mount is None or self._chance(0.5):
            await self._make_mount(yard)
        else:
            act = self._one_of([self._move, self._move, self._remove, self._remove, self._brand, self._look])
            await act(mount) if self._chance(0.85) else await self._change_yard(yard)

    async def _make_yard(self) -> None:
        body = {"metadata": {"name": "yard"}, "spec": {"stalls": 2}}
        reply = await self._insist("POST", YARDS, body)
        if reply.status == 202:
            self._book.promised_yard(reply.json["metadata"]["id"])

    async def _make_mount(self, yard: Any) -> None:
        spec = {"yardId": yard["metadata"]["id"], "breed": "mule", "paddock": self._one_of(PADDOCKS)}
        since = self._book.begin()
        reply = await self._insist("POST", MOUNTS, {"metadata": {"name": self._one_of(NAMES)}, "spec": spec})
        if reply.status == 201:
            read = reply.json
            self._book.promised_mount(
                read["status"]["operationId"], read["metadata"]["id"], read["status"]["yardId"], since=since
            )

    async def _move(self, mount: Any) -> None:
        path = f"{MOUNTS}/{mount['metadata']['id']}"
        found = await self._send("GET", path)
        if found.status != 200:
            return
        wanted = {
            "metadata": {"name": found.json["metadata"]["name"]},
            "spec": {"breed": found.json["spec"]["breed"], "paddock": self._one_of(PADDOCKS)},
        }
        headers = {"if-match": found.headers["etag"]} if self._chance(0.5) else {}
        await self._send("PUT", path, wanted, headers)

    async def _remove(self, mount: Any) -> None:
        name = mount["metadata"]["id"]
        with self._book.going(name):
            reply = await self._send("DELETE", f"{MOUNTS}/{name}")
        if reply.status == 202:
            self._book.must_go.add(mount["status"]["operationId"])

    async def _brand(self, mount: Any) -> None:
        await self._send("POST", f"{MOUNTS}/{mount['metadata']['id']}/brand")

    async def _look(self, mount: Any) -> None:
        await self._send("GET", f"{MOUNTS}/{mount['metadata']['id']}/timeline")

    async def _change_yard(self, yard: Any) -> None:
        name = yard["metadata"]["id"]
        if self._chance(0.7):
            wanted = {"metadata": {"name": "yard"}, "spec": {"stalls": 1 + self._randomness.randrange(3)}}
            await self._send("PUT", f"{YARDS}/{name}", wanted)
            return
        with self._book.going(name):
            reply = await self._send("DELETE", f"{YARDS}/{name}")
        if reply.status == 202:
            self._book.must_go.add(name)

    async def _read(self, path: str) -> Any:
        reply = await self._send("GET", path)
        return reply.json if reply.status == 200 else None

    async def _insist(self, method: str, path: str, body: Any) -> Reply:
        """Send a request under a key, and once more if it fails: it is done once."""
        headers = {"idempotency-key": self._randomness.token_bytes(8).hex()} if self._chance(0.7) else {}
        reply = await self._send(method, path, body, headers)
        if reply.status == UNAVAILABLE and headers:
            reply = await self._send(method, path, body, headers)
        return reply

    async def _send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        reply = await self._client().send(method, path, body=body, headers=headers)
        self._book.outcomes[f"{method} {reply.status}"] += 1
        assert reply.status < 500 or reply.status == UNAVAILABLE, f"{method} {path} answered {reply.body!r}"
        return reply

    def _one_of(self, choices: Sequence[T]) -> Any:
        return choices[self._randomness.randrange(len(choices))] if choices else None

    def _chance(self, share: float) -> bool:
        return self._randomness.uniform(0, 1) < share
