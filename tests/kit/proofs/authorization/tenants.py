"""Two tenants of one region: one records every response that it gets, the other tries to have an effect on them."""

import random
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.region.environment import NORTH

NETWORKS, GROUPS = "/api/v2/networks", "/api/v2/securitygroups"
NAMES = ("blue", "green", "red")
_UNLIKE = re.compile(
    r"(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|network-[0-9]+)"
    r"|(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)"
    r"|(?P<token>[0-9a-f]{32})"
)
_TOLD = ("allow", "cache-control", "content-type", "link", "ratelimit", "retry-after", "www-authenticate")
"""Headers that must be the same; the others are versions, tags and times."""


class Diary:
    """Responses that a tenant got, without times, versions and secrets; ids are replaced by order of appearance."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._ids: dict[str, str] = {}

    def write(self, what: str, reply: Reply) -> None:
        """Record a response."""
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
    """Client that sends random requests, the same for the same seed."""

    def __init__(self, client: Client, seed: int, organization: str, project: str) -> None:
        self._client, self._random = client, random.Random(seed)
        self.organization, self.project = organization, project
        self.networks: dict[str, str] = {}
        """Ids by name."""
        self.groups: dict[str, str] = {}

    async def act(self, key: str) -> tuple[str, Reply]:
        """Send a request under this idempotency key; return what it was, and the response."""
        acts: list[Callable[[str], Awaitable[tuple[str, Reply]]]] = [self._create_network]
        if self.networks:
            acts += [self._create_group, self._create_group, self._list, self._read_network, self._update_network]
            acts += [self._delete_network, self._reuse_key]
        if self.groups:
            acts += [self._read_group, self._update_group, self._delete_group]
        return await self._random.choice(acts)(key)

    def network(self, name: str, **spec: Any) -> dict[str, Any]:
        """Return the request body for a network."""
        place = {"organizationId": self.organization, "projectId": self.project, "regionId": NORTH}
        return {"metadata": {"name": name}, "spec": {"dnsNameservers": [], "prefix": "10.0.0.0/24"} | place | spec}

    async def _create_network(self, key: str) -> tuple[str, Reply]:
        name, prefix = self._random.choice(NAMES), self._random.choice(("10.0.0.0/24", "10.1.0.0/16", "nonsense"))
        reply = await self._client.post(NETWORKS, self.network(name, prefix=prefix), idempotency_key=key)
        if reply.status == 201:
            self.networks[name] = reply.json["metadata"]["id"]
        return f"create network {name}", reply

    async def _create_group(self, key: str) -> tuple[str, Reply]:
        network, name = self._random.choice(sorted(self.networks)), self._random.choice(NAMES)
        body = {"metadata": {"name": name}, "spec": {"networkId": self.networks[network], "rules": []}}
        reply = await self._client.post(GROUPS, body, idempotency_key=key)
        if reply.status == 201:
            self.groups[name] = reply.json["metadata"]["id"]
        return f"create group {name} in {network}", reply

    async def _reuse_key(self, _key: str) -> tuple[str, Reply]:
        body = self.network(self._random.choice(NAMES))
        return "reuse a key", await self._client.post(NETWORKS, body, idempotency_key="key-0")

    async def _list(self, _key: str) -> tuple[str, Reply]:
        path = self._random.choice((NETWORKS, GROUPS))
        return f"list {path}", await self._client.get(path)

    async def _read_network(self, _key: str) -> tuple[str, Reply]:
        name = self._random.choice(sorted(self.networks))
        return f"read network {name}", await self._client.get(f"{NETWORKS}/{self.networks[name]}")

    async def _update_network(self, key: str) -> tuple[str, Reply]:
        name = self._random.choice(sorted(self.networks))
        body = {"metadata": {"name": name}, "spec": {"dnsNameservers": ["10.0.0.1"], "routes": []}}
        path = f"{NETWORKS}/{self.networks[name]}"
        return f"update network {name}", await self._client.put(path, body, idempotency_key=key)

    async def _delete_network(self, _key: str) -> tuple[str, Reply]:
        name = self._random.choice(sorted(self.networks))
        reply = await self._client.delete(f"{NETWORKS}/{self.networks[name]}")
        if reply.status == 202:
            del self.networks[name]
        return f"delete network {name}", reply

    async def _read_group(self, _key: str) -> tuple[str, Reply]:
        name = self._random.choice(sorted(self.groups))
        return f"read group {name}", await self._client.get(f"{GROUPS}/{self.groups[name]}")

    async def _update_group(self, key: str) -> tuple[str, Reply]:
        name = self._random.choice(sorted(self.groups))
        rule = {"direction": "ingress", "protocol": "tcp", "port": 22, "prefix": "0.0.0.0/0"}
        body = {"metadata": {"name": name}, "spec": {"rules": [rule]}}
        path = f"{GROUPS}/{self.groups[name]}"
        return f"update group {name}", await self._client.put(path, body, idempotency_key=key)

    async def _delete_group(self, _key: str) -> tuple[str, Reply]:
        name = self._random.choice(sorted(self.groups))
        return f"delete group {name}", await self._client.delete(f"{GROUPS}/{self.groups.pop(name)}")


class Intruder(Tenant):
    """Tenant that knows all ids of another, and sends requests about them."""

    def __init__(self, client: Client, seed: int, organization: str, project: str, *, victim: Tenant) -> None:
        super().__init__(client, seed, organization, project)
        self._victim = victim

    async def intrude(self, key: str) -> None:
        """Send a request of its own, and every request about objects of the other tenant."""
        await self.act(key)
        victim, send = self._victim, self._client
        replies = [await send.post(NETWORKS, victim.network("mine"))]
        for network in tuple(victim.networks.values()):
            group = {"metadata": {"name": self._random.choice(NAMES)}, "spec": {"networkId": network, "rules": []}}
            update = {"metadata": {"name": "mine"}, "spec": {"dnsNameservers": [], "routes": []}}
            replies += [
                await send.get(f"{NETWORKS}/{network}"),
                await send.put(f"{NETWORKS}/{network}", update),
                await send.put(f"{NETWORKS}/{network}/references/things.example.org%2F1"),
                await send.delete(f"{NETWORKS}/{network}"),
                await send.post(GROUPS, group),
            ]
        for name in tuple(victim.groups.values()):
            body = {"metadata": {"name": "mine"}, "spec": {"rules": []}}
            replies += [
                await send.get(f"{GROUPS}/{name}"),
                await send.put(f"{GROUPS}/{name}", body),
                await send.delete(f"{GROUPS}/{name}"),
            ]
        assert all(reply.status in {403, 404} for reply in replies), [(each.status, each.body) for each in replies]
