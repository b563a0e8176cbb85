"""Customers who make, change, use and remove instances, often several at once and of the same name."""

import asyncio
import base64
import re
from collections.abc import Mapping
from typing import Any

from remuda.compute.app import TABLE
from remuda.compute.instances.rules import instance_id
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import INSTANCES
from tests.kit.identity.environment import ORGANIZATIONS
from tests.kit.sim_compute.history import RECREATED, ComputeHistory, Firm, made_of, requests_of
from tests.kit.sim_compute.system import ComputeSystem
from tests.kit.sim_identity.facts import UNKNOWN
from tests.kit.sim_identity.history import GONE, THERE, Payer, Requests, Verdict, verdict_of
from tests.kit.sim_region.customer import UNAVAILABLE
from tests.kit.sim_region.customers import AGAIN, FLAVORS, Landlords, Tenant

GPUS = "a1f0c0de-0004-4000-8000-000000000004"
IMAGES = ("b1f0c0de-0001-4000-8000-000000000001", "b1f0c0de-0003-4000-8000-000000000003")
NAMES = ("web", "web", "db", "db", AGAIN)
"""Names that many instances have, one after the other; servers without an instance have the last one, too."""
USER_DATA = tuple(
    base64.b64encode(text.encode()).decode()
    for text in ("", "#cloud-config\nhostname: one-that-nobody-reads\n", "#!/bin/sh\necho two-that-nobody-reads\n")
)
MOST = 5
"""How many instances are on a network at most."""
_LOOKS = ("", "/timeline", "/operations", "/explain", "/sshkey", "/consoleoutput", "/consolesession", "list")
_PARAMETER = re.compile(r"\{[^}]*\}")
_OPERATIONS = [
    (route.method, re.compile(_PARAMETER.sub("[^/]+", route.path)), route.name)
    for route in sorted(TABLE.routes, key=lambda route: route.path.count("{"))
]
_KINDS = {
    "networks": (2, 3, 6),
    "servers": (1, 4, 10),
    "floatingips": (0, 1, 5),
    "gpus": (0, 8, 40),
    "loadbalancers": (0, 2, 5),
    "publicips": (0, 1, 5),
}


class Hosts(Landlords):
    """Projects and quotas, also of what instances cost."""

    async def _limit(self, organization: str) -> None:
        quotas = [{"kind": kind, "quantity": self.one_of(limits)} for kind, limits in _KINDS.items()]
        await self.send("PUT", f"{ORGANIZATIONS}/{organization}/quotas", {"quotas": quotas})


class Owners(Tenant):
    """Instances, and everything that can be done to one."""

    system: ComputeSystem
    history: ComputeHistory

    async def act(self) -> None:
        """Do one thing."""
        network, owned = self.network(), self.living("instance")
        on_it = self.living("instance", ("network", network)) if network else []
        if network and len(on_it) < MOST and (not owned or self.chance(0.4)):
            await self._make(network)
        elif owned:
            await self._use(self.one_of(owned))
        elif known := list(self.history.known["instance"]):
            await self._look(self.one_of(known))

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        """Send a request to compute, in one of the processes."""
        token = await self.system.root()
        reply = await self.system.compute(token).send(method, path, body=body, **more)
        if reply.status < 400:
            known = [name for verb, found, name in _OPERATIONS if verb == method and found.fullmatch(path)]
            self.history.operations.update(known)
        self.history.outcomes[f"{method} {reply.status}"] += 1
        is_known = reply.status < 500 or reply.status == UNAVAILABLE or self._is_without_server(path, reply)
        assert is_known, f"{method} {path} answered {reply.body!r}"
        return reply

    def _is_without_server(self, path: str, reply: Reply) -> bool:
        """Tell whether an instance says that it lacks a server which somebody has removed behind its back."""
        parts = path.removeprefix(f"{INSTANCES}/").split("/")
        return parts[0] in self.history.undercut and reply.json["code"] == "inconsistent"

    async def _make(self, network: str) -> None:
        """Ask for a new instance: alone, or with somebody who wants the same name, or the very same."""
        is_new = self.chance(0.5)
        name, key = self.history.name("instance") if is_new else self.one_of(NAMES), self._key()
        spec = self._drawn(network)
        if self.chance(0.7):
            await self._create(network, name, spec, key)
            return
        other = spec if self.chance(0.5) else self._drawn(network)
        its_key = key if other is spec else self._key()
        await asyncio.gather(self._create(network, name, spec, key), self._create(network, name, other, its_key))

    async def _create(self, network: str, name: str, spec: Mapping[str, Any], key: str) -> None:
        place, id_ = self.history.known["network"][network], instance_id(network, name)
        where = {"organizationId": place.organization, "projectId": place.project, "networkId": network}
        body = {"metadata": {"name": name}, "spec": {**where, **spec}}
        if name == AGAIN:  # whose the server of that name is, nobody can say any more
            for what in (THERE, "image", "public"):
                self.history.facts[what, "server", id_].ask(UNKNOWN, lasts=True)
        said = requests_of(id_, {"protection": {"deletion": False, "plan": False}, **spec})
        requests: Requests = {(THERE, "instance", id_): THERE, **said}
        with self.history.asking(requests) as asked:
            reply, asked.verdict = await self._twice("POST", INSTANCES, body, key)
            if asked.verdict != "yes":
                return
            assert reply.json["metadata"]["id"] == id_, reply.json
            self.history.put(("instance", id_), ("network", network), ("project", place.project))
            self.history.known["instance"][id_] = place

    async def _twice(self, method: str, path: str, body: Any, key: str, **more: Any) -> tuple[Reply, Verdict]:
        """Ask for a change, and under a key once more if nobody knows what became of it."""
        headers = {"idempotency-key": key} if key else {}
        reply = await self.ask(method, path, body, headers=headers, **more)
        if reply.status != UNAVAILABLE or not key:
            return reply, verdict_of(reply)
        reply = await self.ask(method, path, body, headers=headers, **more)
        verdict = verdict_of(reply)
        return reply, "unclear" if verdict == "no" else verdict

    async def _use(self, instance: str) -> None:
        path, draw = f"{INSTANCES}/{instance}", self._randomness.uniform(0, 1)
        if draw < 0.2:
            await self._delete(instance)
        elif draw < 0.6:
            await self._change(instance, path)
        elif draw < 0.8:
            verb = self.one_of(("start", "stop", "stop", "reboot"))
            reply = await self.ask("POST", f"{path}/{verb}", query={"hard": "true"} if verb == "reboot" else {})
            if verb == "stop" and reply.status == 202 and self.chance(0.7):
                await self.system.machine.clock.sleep(2)
                await self.ask("POST", f"{path}/start")
        elif draw < 0.85:
            await self._undercut(instance)
        elif draw < 0.88:
            await self._snapshot(instance)
        else:
            await self._look(instance)

    async def _delete(self, instance: str) -> None:
        """Ask for an instance to go. Where the policy of its project is against that, it stays."""
        policy, there = self._policy(instance, "keeps"), Firm(self.history, (THERE, "instance", instance))
        with self.history.asking({(THERE, "instance", instance): GONE}) as asked:
            reply, asked.verdict = await self._twice("DELETE", f"{INSTANCES}/{instance}", None, "")
        is_kept = policy.is_still(value=True) and there.is_still(THERE, asked)
        assert not (is_kept and reply.status == 202), f"the policy keeps the instance {instance}, and it was deleted"

    async def _change(self, instance: str, path: str) -> None:
        """Want some of it otherwise: at once, or as a plan says that was asked for before."""
        read = await self.ask("GET", path)
        if read.status != 200:
            return
        there, drawn = read.json["spec"], self._drawn(read.json["status"]["networkId"])
        spec = there | {field: value for field, value in drawn.items() if self.chance(0.4)}
        body, query = {"metadata": {"name": read.json["metadata"]["name"]}, "spec": spec}, {}
        if self.chance(0.4):
            planned = await self.ask("PUT", path, body, query={"dryRun": "true"})
            if planned.status != 200 or self.chance(0.3):
                return
            query = {"plan": planned.json["hash"]}
            self.history.agreed[instance].add(made_of(spec))
        await self._put(instance, body, query)

    async def _put(self, instance: str, body: Mapping[str, Any], query: Mapping[str, str]) -> None:
        """Ask for a change. Where the policy of its project demands a plan, nothing is destroyed without its hash."""
        requests, policy = requests_of(instance, body["spec"]), self._policy(instance, "plans")
        before = {key: Firm(self.history, key) for key in requests if key[0] in RECREATED}
        with self.history.asking(requests) as asked:
            reply, asked.verdict = await self._twice("PUT", f"{INSTANCES}/{instance}", body, "", query=query)
        is_destroyed = any(
            firm.value not in {UNKNOWN, requests[key]} and firm.is_still(firm.value, asked)
            for key, firm in before.items()
        )
        is_demanded = policy.is_still(value=True) and not query
        assert not (is_demanded and is_destroyed and reply.status == 202), f"the instance {instance} changed unplanned"

    def _policy(self, instance: str, what: str) -> Firm:
        return Firm(self.history, (f"policy {what}", "project", self.history.known["instance"][instance].project))

    async def _undercut(self, instance: str) -> None:
        """Remove its server at region, behind compute's back; it is recreated, with another port."""
        self.history.undercut.add(instance)
        await self.remove("server", instance)

    async def _look(self, instance: str) -> None:
        for what in (self.one_of(_LOOKS), self.one_of(_LOOKS)):
            reply = await self.ask("GET", INSTANCES if what == "list" else f"{INSTANCES}/{instance}{what}")
            if what == "/sshkey" and reply.status == 200:
                self.history.private_keys.add(reply.json["privateKey"])

    def _drawn(self, network: str) -> dict[str, Any]:
        """Return something that can be wanted of an instance on a network."""
        place = self.history.known["network"][network]
        authorities = self.living("authority", ("project", place.project))
        groups = [each for each in self.living("group", ("network", network)) if self.chance(0.5)]
        spec: dict[str, Any] = {
            "flavorId": GPUS if self.chance(0.1) else self.one_of(FLAVORS),
            "imageId": self.image(network),
            "networking": {"publicIP": self.chance(0.3), "securityGroups": groups},
            "userData": self.one_of(USER_DATA),
        }
        if authorities and self.chance(0.3):
            spec["sshCertificateAuthorityId"] = self.one_of(authorities)
        return spec

    def image(self, network: str) -> str:
        """Return what an instance on a network is to be made of, now and then an image of the customers' own."""
        region = self.history.regions[network]
        own = [each for each in self.living("image") if self.history.regions[each] == region]
        return self.one_of(own if own and self.chance(0.3) else IMAGES)

    async def _snapshot(self, instance: str) -> None:
        since, place = self.history.now(), self.history.known["instance"][instance]
        body = {"metadata": {"name": self.history.name("image")}}
        reply, verdict = await self._twice("POST", f"{INSTANCES}/{instance}/snapshot", body, self._key())
        if verdict == "yes":
            network = next(id_ for kind, id_ in self.history.homes["instance", instance] if kind == "network")
            image = reply.json["metadata"]["id"]
            self.history.regions[image] = self.history.regions[network]
            self.history.made("image", image, Payer(place.organization), since=since)

    def _key(self) -> str:
        return self._randomness.token_bytes(8).hex() if self.chance(0.5) else ""
