"""Two tenants of one livery: one keeps a diary of all that it is told, the other does what it can to show up in it."""

import random
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tests.example.authenticator import FOREIGN_ORGANIZATION, FOREIGN_PROJECT, ORGANIZATION, PROJECT
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply

MOUNTS = "/api/v2/mounts"
NAMES = ("bella", "cloud", "duke")
_UNLIKE = re.compile(
    r"(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|grazing-[0-9]+)"
    r"|(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)"
    r"|(?P<token>[0-9a-f]{32})"
)
_TOLD = ("allow", "cache-control", "content-type", "link", "ratelimit", "retry-after", "www-authenticate")
"""Headers that must be the same; the others are versions, tags and times."""


def yards_of(organization: str, project: str) -> str:
    """Return the path of a project's yards."""
    return f"/api/v1/organizations/{organization}/projects/{project}/yards"


class Diary:
    """All that a tenant is told, but for ids, times, versions and secrets: an id is known by when it first came up."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._ids: dict[str, str] = {}

    def write(self, what: str, reply: Reply) -> None:
        """Note an answer."""
        headers = {name: reply.headers[name] for name in _TOLD if name in reply.headers}
        body = _in_order(reply.json) if reply.body else None
        told = msgspec.json.encode(body, order="sorted").decode()
        self.lines.append(self._plain(f"{what} {reply.status} {headers} {told}"))

    def _plain(self, text: str) -> str:
        # How far a controller has come when a write is answered is a matter of time, too.
        return _UNLIKE.sub(self._stand_in, text).replace('"provisioning"', '"pending"')

    def _stand_in(self, found: re.Match[str]) -> str:
        if found["id"] is None:
            return found.lastgroup or ""
        return self._ids.setdefault(found["id"], f"id-{len(self._ids)}")


def _in_order(body: Any) -> Any:
    """Sort by name what comes in the order of ids, and leave out of a timeline what tells how far a controller was."""
    if isinstance(body, list) and body and "metadata" in body[0]:
        return sorted(body, key=lambda item: (item["metadata"]["name"], item["metadata"]["creationTime"]))
    if isinstance(body, list) and body and "event" in body[0]:
        return [entry for entry in body if "controller" not in entry["event"]]
    return body


class Tenant:
    """Somebody who uses the livery at random, but each time in the same way."""

    def __init__(self, client: Client, seed: int, organization: str, project: str) -> None:
        self._client, self._random = client, random.Random(seed)
        self._yards_path = yards_of(organization, project)
        self.yards: dict[str, str] = {}
        """Ids by name."""
        self.mounts: dict[str, str] = {}

    async def act(self, key: str) -> tuple[str, Reply]:
        """Do something, under this idempotency key, and return what it was and what came of it."""
        acts: list[Callable[[str], Awaitable[tuple[str, Reply]]]] = [self._make_yard]
        if self.yards:
            acts += [self._make_mount, self._make_mount, self._list_yards, self._list_mounts, self._change_yard]
        if self.mounts:
            acts += [self._move, self._read, self._read_timeline, self._remove, self._brand]
        return await self._random.choice(acts)(key)

    async def _make_yard(self, key: str) -> tuple[str, Reply]:
        name = self._random.choice(NAMES)
        body = {"metadata": {"name": name}, "spec": {"stalls": 2}}
        reply = await self._client.post(self._yards_path, body, idempotency_key=key)
        if reply.status == 202:
            self.yards[name] = reply.json["metadata"]["id"]
        return f"make yard {name}", reply

    async def _make_mount(self, key: str) -> tuple[str, Reply]:
        region_servers, name = self._random.choice(sorted(self.yards)), self._random.choice(NAMES)
        spec = {
            "yardId": self.yards[region_servers],
            "breed": "mule",
            "paddock": self._random.choice(("home", "north")),
        }
        reply = await self._client.post(MOUNTS, {"metadata": {"name": name}, "spec": spec}, idempotency_key=key)
        if reply.status == 201:
            self.mounts[name] = reply.json["metadata"]["id"]
        return f"make mount {name} in {region_servers}", reply

    async def _change_yard(self, _key: str) -> tuple[str, Reply]:
        region_servers = self._random.choice(sorted(self.yards))
        body = {"metadata": {"name": region_servers}, "spec": {"stalls": self._random.randrange(4)}}
        return f"change yard {region_servers}", await self._client.put(
            f"{self._yards_path}/{self.yards[region_servers]}", body
        )

    async def _list_yards(self, _key: str) -> tuple[str, Reply]:
        return "list yards", await self._client.get(self._yards_path)

    async def _list_mounts(self, _key: str) -> tuple[str, Reply]:
        return "list mounts", await self._client.get(MOUNTS)

    async def _move(self, key: str) -> tuple[str, Reply]:
        mount = self._random.choice(sorted(self.mounts))
        body = {"metadata": {"name": mount}, "spec": {"breed": "mule", "paddock": "south"}}
        path = f"{MOUNTS}/{self.mounts[mount]}"
        return f"move {mount}", await self._client.put(path, body, idempotency_key=key)

    async def _read(self, _key: str) -> tuple[str, Reply]:
        mount = self._random.choice(sorted(self.mounts))
        return f"read {mount}", await self._client.get(f"{MOUNTS}/{self.mounts[mount]}")

    async def _read_timeline(self, _key: str) -> tuple[str, Reply]:
        mount = self._random.choice(sorted(self.mounts))
        return f"read the timeline of {mount}", await self._client.get(f"{MOUNTS}/{self.mounts[mount]}/timeline")

    async def _remove(self, _key: str) -> tuple[str, Reply]:
        mount = self._random.choice(sorted(self.mounts))
        return f"remove {mount}", await self._client.delete(f"{MOUNTS}/{self.mounts.pop(mount)}")

    async def _brand(self, _key: str) -> tuple[str, Reply]:
        mount = self._random.choice(sorted(self.mounts))
        return f"brand {mount}", await self._client.post(f"{MOUNTS}/{self.mounts[mount]}/brand")


class Intruder(Tenant):
    """A tenant who knows all ids of another, and lays hands on them."""

    def __init__(self, client: Client, seed: int, victim: Tenant) -> None:
        super().__init__(client, seed, FOREIGN_ORGANIZATION, FOREIGN_PROJECT)
        self._victim = victim

    async def intrude(self, key: str) -> None:
        """Do something of one's own, and try everything on something of the other's."""
        await self.act(key)
        yards = yards_of(ORGANIZATION, PROJECT)
        body = {"metadata": {"name": "mine"}, "spec": {"stalls": 0, "breed": "mule"}}
        replies = [
            await self._client.post(yards, body),
            await self._client.get(MOUNTS, {"organizationID": ORGANIZATION}),
        ]
        for region_servers in tuple(self._victim.yards.values()):
            new = {
                "metadata": {"name": self._random.choice(NAMES)},
                "spec": {"yardId": region_servers, "breed": "mule"},
            }
            replies += [
                await self._client.put(f"{yards}/{region_servers}", body),
                await self._client.delete(f"{yards}/{region_servers}"),
                await self._client.put(f"{yards}/{region_servers}/references/things.example.org%2F1"),
                await self._client.post(MOUNTS, new),
            ]
        for mount in tuple(self._victim.mounts.values()):
            replies += [
                await self._client.put(f"{MOUNTS}/{mount}", body),
                await self._client.post(f"{MOUNTS}/{mount}/brand"),
                await self._client.delete(f"{MOUNTS}/{mount}"),
            ]
        assert all(reply.status in {403, 404} for reply in replies), [reply.status for reply in replies]
