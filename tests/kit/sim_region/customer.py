"""Customers of region: what all of them do, whatever they are after."""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

from remuda.region.app import TABLE
from tests.kit.asgi.contract import Reply
from tests.kit.identity.environment import ORGANIZATIONS
from tests.kit.sim_identity.history import GONE, THERE, Payer, Verdict, verdict_of
from tests.kit.sim_region.history import Thing
from tests.kit.sim_region.system import RegionSystem

T = TypeVar("T")

UNAVAILABLE = 503
PATHS: Mapping[str, str] = {
    "network": "/api/v2/networks",
    "group": "/api/v2/securitygroups",
    "balancer": "/api/v2/loadbalancers",
    "server": "/api/v2/servers",
    "authority": "/api/v2/sshcertificateauthorities",
    "storage": "/api/v2/filestorage",
}
"""Where each kind is."""
_PARAMETER = re.compile(r"\{[^}]*\}")
OPERATIONS = [
    (route.method, re.compile(_PARAMETER.sub("[^/]+", route.path)), route.name)
    for route in sorted(TABLE.routes, key=lambda route: route.path.count("{"))
]
"""Every operation of region: its method, its path and its name."""


class Customer:
    """Does something at random."""

    def __init__(self, system: RegionSystem) -> None:
        self.system, self.history = system, system.history
        self._randomness = system.machine.randomness

    async def send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request to one of the processes."""
        token = await self.system.root()
        is_of_identity = path.startswith(ORGANIZATIONS) and "/regions/" not in path
        client = self.system.identity(token) if is_of_identity else self.system.region(token)
        return self.noted(method, path, await client.send(method, path, body=body, headers=headers))

    def noted(self, method: str, path: str, reply: Reply) -> Reply:
        """Count an answer."""
        self.history.outcomes[f"{method} {reply.status}"] += 1
        assert reply.status < 500 or reply.status == UNAVAILABLE, f"{method} {path} answered {reply.body!r}"
        if reply.status < 400:
            self.history.operations.update(
                name for verb, pattern, name in OPERATIONS if verb == method and pattern.fullmatch(path)
            )
        return reply

    async def write(self, method: str, path: str, body: Any = None) -> tuple[Reply, Verdict]:
        """Ask for a change, perhaps under a key, and then once more if nobody knows what became of it."""
        headers, is_unclear = {}, False
        if method == "POST" and self.chance(0.5):
            headers["idempotency-key"] = self._randomness.token_bytes(8).hex()
        reply = await self.send(method, path, body, headers=headers)
        if reply.status == UNAVAILABLE and headers:
            is_unclear = True
            reply = await self.send(method, path, body, headers=headers)
        verdict = verdict_of(reply)
        return reply, "unclear" if verdict == "no" and is_unclear else verdict

    async def make(self, kind: str, spec: Any, place: Payer, *homes: Thing, name: str = "", **said: Hashable) -> str:
        """Make something, and note what is said of it; return its id, or nothing."""
        since, name = self.history.now(), name or self.history.name(kind)
        reply, verdict = await self.write("POST", PATHS[kind], {"metadata": {"name": name}, "spec": spec})
        if verdict != "yes":
            return ""
        id_ = str(reply.json["metadata"]["id"])
        self.history.put((kind, id_), *homes, ("project", place.project))
        self.history.made(kind, id_, place, since=since, name=name, **said)
        return id_

    async def change(self, kind: str, id_: str, spec: Mapping[str, Any], **said: Hashable) -> None:
        """Change what can be changed of something, and leave the rest as it is read to be."""
        path = f"{PATHS[kind]}/{id_}"
        read = await self.send("GET", path)
        if read.status != 200:
            return
        body = {"metadata": {"name": read.json["metadata"]["name"]}, "spec": read.json["spec"] | spec}
        with self.history.asking({(what, kind, id_): value for what, value in said.items()}) as asked:
            _, asked.verdict = await self.write("PUT", path, body)

    async def remove(self, kind: str, id_: str, path: str = "") -> None:
        """Ask for something to go."""
        with self.history.asking({(THERE, kind, id_): GONE}) as asked:
            _, asked.verdict = await self.write("DELETE", path or f"{PATHS[kind]}/{id_}")

    def living(self, kind: str, *homes: Thing) -> list[str]:
        """Return what customers know of a kind and nobody has asked to go, in all of these homes."""
        return [
            each
            for each in self.history.known[kind]
            if not self.history.may_go((kind, each)) and set(homes) <= set(self.history.homes.get((kind, each), ()))
        ]

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of several."""
        return choices[self._randomness.randrange(len(choices))]

    def chance(self, share: float) -> bool:
        """Tell whether something happens that does so often."""
        return self._randomness.uniform(0, 1) < share
