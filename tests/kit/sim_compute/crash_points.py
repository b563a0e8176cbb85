"""One instance, made, changed and removed: ended at every step of its making, and with a crash at every commit.

Nothing else goes wrong here, so whatever is left over is left by the order in which we do things.
"""

from typing import Any

from remuda.app import registry
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import INSTANCES, JAMMY
from tests.kit.compute.updates import LARGE, SMALL
from tests.kit.identity.environment import ORGANIZATIONS
from tests.kit.sim_compute.checker import ComputeChecker
from tests.kit.sim_compute.customers import IMAGES
from tests.kit.sim_compute.system import ComputeSystem
from tests.kit.sim_identity.history import GONE, THERE, verdict_of
from tests.kit.sim_region.crash_points import TIMEOUT_S, Bench
from tests.kit.sim_region.customers import Landlords
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.runner import World

INSTANCE = "instance"
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "another flavor": {"flavorId": LARGE},
    "another image": {"imageId": IMAGES[1]},
    "a public address": {"networking": {"publicIP": True}},
    "a rebuild": {"rebuilds": 1},
    "everything": {"flavorId": LARGE, "imageId": IMAGES[1], "networking": {"publicIP": True}},
}
"""What is wanted of an instance in the midst of its life. A rebuild is asked for, and not put into its spec."""
CALLS = "cloud.error.rebuild_server"
"""Counts how often clouds were asked for a rebuild."""


class InstanceBench(Bench):
    """Makes and removes one instance after the other."""

    system: ComputeSystem

    def __init__(self, world: World, change: str = "nothing") -> None:
        Landlords.__init__(self, ComputeSystem(SimMachine(world, registry())))
        self.world, self._change = world, CHANGES[change]
        world.invariants[:] = [ComputeChecker(self.system, lambda: self.system.store._writer.version).check]
        self._network = ""
        self._made: dict[str, str] = {}
        self._rebuilds: dict[str, int] = {}

    async def furnish(self, kind: str) -> None:
        """Have a network on which instances are made."""
        reply = await super().post("network", self.history.name("network"), "")
        assert reply.status == 201, reply
        self._network = reply.json["metadata"]["id"]
        if kind == INSTANCE:
            await self.rest()

    async def post(self, kind: str, name: str, key: str) -> Reply:
        """Ask for a new instance, or for whatever region has."""
        if kind != INSTANCE:
            return await super().post(kind, name, key)
        place, since = self._place, self.history.now()
        where = {"organizationId": place.organization, "projectId": place.project, "networkId": self._network}
        spec = {**where, "flavorId": SMALL, "imageId": JAMMY, "networking": {"publicIP": not self._change}}
        headers = {"idempotency-key": key} if key else {}
        reply = await self._ask("POST", INSTANCES, {"metadata": {"name": name}, "spec": spec}, headers=headers)
        if verdict_of(reply) == "yes":
            id_ = reply.json["metadata"]["id"]
            self.history.put((INSTANCE, id_), ("network", self._network), ("project", place.project))
            if id_ not in self.history.known[INSTANCE]:
                self.history.made(INSTANCE, id_, place, since=since)
        return reply

    async def delete(self, kind: str, id_: str) -> Reply:
        """Ask for an instance to go, or for whatever region has."""
        if kind != INSTANCE:
            return await super().delete(kind, id_)
        with self.history.asking({(THERE, kind, id_): GONE}) as asked:
            reply = await self._ask("DELETE", f"{INSTANCES}/{id_}")
            asked.verdict = verdict_of(reply)
        return reply

    async def rest(self) -> None:
        """Wait until everything is as it should be."""
        deadline = self.world.clock.monotonic() + TIMEOUT_S
        while left := self.system.unrest(await self.system.see(), is_empty=False):
            assert self.world.clock.monotonic() < deadline, f"no rest within {TIMEOUT_S:g} s: {'; '.join(left)}"
            await self.world.clock.sleep(2)

    async def delete_home_after(self, home: str, steps: int) -> bool:
        """Delete the network or project of an instance so many steps after that is first there; tell if it was done."""
        await self.begin()
        self._place = self.history.known["project"][project := self.living("project")[-1]]
        await self.furnish(INSTANCE)
        id_, making = await self._after(INSTANCE, steps)
        was_done = making.done() and self._is_done(INSTANCE, id_)
        if home == "network":
            deleted = await self.delete("network", self._network)
            if deleted.status == 403:  # it is used by now: then both go in order
                assert (await making).status == 201
                assert (await self.delete(INSTANCE, id_)).status == 202
                await self.rest()
                deleted = await self.delete("network", self._network)
            assert deleted.status in {202, 204}, deleted
        else:
            await self.remove("project", project, f"{ORGANIZATIONS}/{self._place.organization}/projects/{project}")
        assert (await making).status in {201, 400, 404}
        await self.rest()
        assert id_ not in self._things(INSTANCE), f"the instance {id_} is gone"
        assert self._network not in self._things("network"), f"the network {self._network} is gone"
        return was_done

    async def _story(self, kind: str, name: str) -> None:
        """Make an instance, see it come, change it, see that come, remove it and see it go."""
        if self._change and name not in self._made:
            await self._begin(kind, name)
        if self._change and not self.system.machine.is_down and self._made[name] in self._things(kind):
            await self._alter(self._made[name])
        if not self.system.machine.is_down:
            await super()._story(kind, name)

    async def _begin(self, kind: str, name: str) -> None:
        reply = await self.post(kind, name, f"key-{name}")
        assert self.system.machine.is_down or reply.status == 201, reply
        if reply.status == 201:
            id_ = self._made[name] = reply.json["metadata"]["id"]
            await self._until(lambda: self._is_done(kind, id_))

    async def _alter(self, id_: str) -> None:
        """Want it otherwise, and see that come."""
        read = await self._ask("GET", f"{INSTANCES}/{id_}")
        if read.status == 200 and not read.json["metadata"].get("deletionTime"):
            if "rebuilds" in self._change:
                await self._rebuild(id_)
                return
            body = {"metadata": {"name": read.json["metadata"]["name"]}, "spec": read.json["spec"] | self._change}
            reply = await self._ask("PUT", f"{INSTANCES}/{id_}", body)
            assert self.system.machine.is_down or reply.status == 202, reply
            await self._until(lambda: self._is_as_wanted(id_))

    async def _rebuild(self, id_: str) -> None:
        """Have it rebuilt from its own image: once, however often that is asked for under one key."""
        before, headers = self._rebuilds.setdefault(id_, self._calls()), {"idempotency-key": f"rebuild-{id_}"}
        reply = await self._ask("POST", f"{INSTANCES}/{id_}/rebuild", headers=headers)
        assert self.system.machine.is_down or reply.status == 202, reply
        await self._until(lambda: self._is_as_wanted(id_))
        if not self.system.machine.is_down:
            assert self._things(INSTANCE)[id_].spec.rebuilds == 1
            assert self._calls() == before + 1, "the new disk is not lost, too"

    def _calls(self) -> int:
        found = self.world.faults.counts.get(CALLS)
        return 0 if found is None else found.asked

    def _is_as_wanted(self, id_: str) -> bool:
        instance, server = self._things(INSTANCE)[id_], self._things("server").get(id_)
        wanted = (instance.spec.flavor_id, instance.spec.image_id, instance.spec.wants_public_ip)
        is_done = self._is_done(INSTANCE, id_) and instance.status.observed_generation == instance.metadata.generation
        if server is None or not is_done or instance.spec.rebuilds != server.status.applied_rebuilds:
            return False
        return wanted == (server.spec.flavor_id, server.spec.image.id, server.spec.has_public_ip)

    async def _ask(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        """Send a request to compute."""
        token = await self.system.root()
        reply = await self.system.compute(token).send(method, path, body=body, **more)
        assert reply.status < 500 or reply.status == 503, f"{method} {path} answered {reply.body!r}"
        return reply
