"""One thing of each kind, made and removed: deleted at every step of its making, and with a crash at every commit.

Nothing else goes wrong here, so whatever is left over is left by the order in which we do things; or one thing does at
the cloud, which a test chooses for each time: so what is left over is left by how we take that.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from remuda.app import registry
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import RemudaError
from remuda.providers.simulated.faults import Fault
from remuda.region.filestorage.classes import class_id
from tests.kit.asgi.contract import Reply
from tests.kit.identity.environment import ORGANIZATIONS
from tests.kit.region.environment import STANDARD, UBUNTU
from tests.kit.sim_identity.history import GONE, THERE, Payer, verdict_of
from tests.kit.sim_region.checker import RegionChecker
from tests.kit.sim_region.customer import PATHS, UNAVAILABLE
from tests.kit.sim_region.customers import KEY, STORAGE_CLASS, Landlords
from tests.kit.sim_region.quiescence import unrest
from tests.kit.sim_region.system import REGIONS, RegionSystem
from tests.kit.simulation.checks import at_once
from tests.kit.simulation.faults import Count
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World

ON_A_NETWORK = {"group", "balancer", "server"}
TIMEOUT_S = 600.0

_LISTENER = {"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}
_SPECS: Mapping[str, Mapping[str, Any]] = {
    "network": {"regionId": REGIONS[0], "prefix": "10.0.0.0/16", "dnsNameservers": []},
    "group": {"rules": []},
    "balancer": {"publicIP": True, "listeners": [_LISTENER]},
    "server": {"flavorId": STANDARD, "imageId": UBUNTU, "networking": {"publicIP": True}},
    "authority": {"publicKey": KEY},
    "storage": {
        "regionId": REGIONS[0],
        "storageClassId": class_id(REGIONS[0], STORAGE_CLASS),
        "sizeGiB": 1,
        "storageType": {},
    },
}


class Bench(Landlords):
    """Makes and removes one thing after the other."""

    _planned: tuple[Fault | None, int] = (None, 0)

    def __init__(self, world: World) -> None:
        super().__init__(RegionSystem(SimMachine(world, registry())))
        self.world = world
        world.invariants[:] = [RegionChecker(self.system, lambda: self.system.store._writer.version).check]
        self._place, self._network = Payer(), ""
        self._made: dict[str, str] = {}

    def plan(self, fault: Fault | None, nth: int) -> None:
        """Have this go wrong at the nth call to a cloud that it can happen to, once the next thing is there."""
        self._planned = (fault, nth)

    async def open(self) -> None:
        """Begin, with a project to work in."""
        await self.system.open()
        await self.system.boot(is_calm=True)
        await self.begin()
        self._place = self.history.known["project"][self.living("project")[0]]

    async def furnish(self, kind: str) -> None:
        """Have what a kind stands on."""
        if kind in {*ON_A_NETWORK, "storage"}:
            reply = await self.post("network", "stays", "")
            self._network = reply.json["metadata"]["id"]
            await self.rest()

    async def close(self) -> None:
        """End, with everything as it should be, once everything has gone wrong that is to."""
        await self._until(self._has_all_gone_wrong)
        await self.system.come_to_rest()
        await self.remove_everything()
        await self.system.come_to_rest(is_empty=True)
        await self.system.halt()
        await self.system.close()

    async def post(self, kind: str, name: str, key: str) -> Reply:
        """Ask for a new thing."""
        place, since = self._place, self.history.now()
        where = {"organizationId": place.organization, "projectId": place.project}
        spec = {**_SPECS[kind], **({"networkId": self._network} if kind in ON_A_NETWORK else where)}
        if kind == "storage":
            spec["attachments"] = {"networkIds": [self._network]}
        reply = await self.send(
            "POST",
            PATHS[kind],
            {"metadata": {"name": name}, "spec": spec},
            headers={"idempotency-key": key} if key else {},
        )
        if verdict_of(reply) == "yes":
            id_ = reply.json["metadata"]["id"]
            self.history.put((kind, id_), ("project", place.project))
            if id_ not in self.history.known[kind]:
                self.history.made(kind, id_, place, since=since)
        return reply

    async def delete(self, kind: str, id_: str) -> Reply:
        """Ask for a thing to go."""
        with self.history.asking({(THERE, kind, id_): GONE}) as asked:
            reply = await self.send("DELETE", f"{PATHS[kind]}/{id_}")
            asked.verdict = verdict_of(reply)
        return reply

    async def rest(self) -> None:
        """Wait until everything is as it should be."""
        deadline = self.world.clock.monotonic() + TIMEOUT_S
        while left := unrest(await self.system.see(), is_empty=False):
            assert self.world.clock.monotonic() < deadline, f"no rest within {TIMEOUT_S:g} s: {'; '.join(left)}"
            await self.world.clock.sleep(2)

    async def delete_after(self, kind: str, steps: int) -> bool:
        """Delete a thing so many steps after it is first there; tell whether it was done by then."""
        id_, making = await self._after(kind, steps)
        was_done = making.done() and self._is_done(kind, id_)
        deleted = await self.delete(kind, id_)
        made = await making
        assert deleted.status in {202, 204} or not was_done, f"a {kind} that is done answers {deleted}"
        if deleted.status not in {202, 204}:  # it was too early to delete it: then it is made, and goes after that
            assert deleted.status in {403, 404, 409}, deleted
            assert made.status == 201, made
            assert (await self.delete(kind, id_)).status in {202, 204}
        await self.rest()
        assert id_ not in self._things(kind), f"the {kind} {id_} is gone"
        self._forget()
        return was_done

    async def delete_project_after(self, kind: str, steps: int) -> bool:
        """Delete the project of a thing so many steps after that is first there; tell whether it was done by then."""
        await self.begin()
        self._place = self.history.known["project"][project := self.living("project")[-1]]
        await self.furnish(kind)
        id_, making = await self._after(kind, steps)
        was_done = making.done() and self._is_done(kind, id_)
        await self.remove("project", project, f"{ORGANIZATIONS}/{self._place.organization}/projects/{project}")
        assert (await making).status in {201, 400, 404}
        await self.rest()
        assert id_ not in self._things(kind), f"the {kind} {id_} is gone"
        assert project not in self._things("project"), f"the project {project} is gone"
        self._forget()
        return was_done

    async def _after(self, kind: str, steps: int) -> tuple[str, "asyncio.Task[Reply]"]:
        """Begin to make a thing; return its id so many steps after it is first there."""
        known, due = set(self._things(kind)), asyncio.Event()
        appeared: list[tuple[str, int]] = []

        def count() -> None:
            if not appeared and (new := self._things(kind).keys() - known):
                appeared.append((new.pop(), self.world.loop.steps))
                self._release_wrong()
            if appeared and self.world.loop.steps - appeared[0][1] >= steps:
                due.set()

        self.world.invariants.append(count)
        making = asyncio.ensure_future(self.post(kind, self.history.name(kind), ""))
        await due.wait()
        self.world.invariants.remove(count)
        return appeared[0][0], making

    def _forget(self) -> None:
        """Forget what is gone, as everything is at rest: the invariants would compare it with all that comes."""
        for kind, known in self.history.known.items():
            for id_ in [id_ for id_ in known if id_ not in self._things(kind)]:
                del known[id_]
                del self.history.facts[THERE, kind, id_]

    async def crash_at(self, kind: str, sync: int, keep: Keep) -> bool:
        """Make and remove a thing, and lose power at the nth commit of that; tell whether there were so many."""
        name = self.history.name(kind)
        self.world.plan_power_cut(sync, keep=keep)
        self._release_wrong()
        with suppress(RemudaError):
            await asyncio.wait_for(self._story(kind, name), TIMEOUT_S)
        if not self.system.machine.is_down:
            self.world.disk._planned_cut = None
            return False
        await self.system.halt()
        await self.system.boot(is_calm=True)
        await self.rest()
        await self._story(kind, name)
        await self.rest()
        self._forget()
        return True

    def _release_wrong(self) -> None:
        (fault, nth), faults = self._planned, self.world.faults
        if fault is not None:
            name = f"cloud.{fault}"
            faults.at(name, faults.counts.get(name, Count()).asked + nth)

    def _has_all_gone_wrong(self) -> bool:
        faults = self.world.faults
        return all(faults.counts[name].fired for name in faults.planned)

    async def _story(self, kind: str, name: str) -> None:
        """Make a thing, see it come, remove it and see it go. What was answered need not be asked again."""
        if name not in self._made:
            reply = await self._post_until_known(kind, name)
            if reply.status == 201:
                self._made[name] = reply.json["metadata"]["id"]
            assert self.system.machine.is_down or reply.status == 201, reply
        if self.system.machine.is_down:
            return
        id_ = self._made[name]
        await self._until(lambda: id_ not in self._things(kind) or self._is_done(kind, id_))
        if not self.system.machine.is_down:
            reply = await self.delete(kind, id_)
            assert self.system.machine.is_down or reply.status in {202, 204, 404}, reply
        await self._until(lambda: id_ not in self._things(kind))

    async def _post_until_known(self, kind: str, name: str) -> Reply:
        while (reply := await self.post(kind, name, f"key-{name}")).status == UNAVAILABLE:
            if self.system.machine.is_down:
                break
        return reply

    async def _until(self, holds: Callable[[], bool]) -> None:
        deadline = self.world.clock.monotonic() + TIMEOUT_S
        while not self.system.machine.is_down and not holds():
            assert self.world.clock.monotonic() < deadline, "it does not come, or does not go"
            await self.world.clock.sleep(1)

    def _things(self, kind: str) -> Mapping[str, Any]:
        return at_once(self.system.see()).of(kind)

    def _is_done(self, kind: str, id_: str) -> bool:
        found = self._things(kind).get(id_)
        available = None if found is None else find_condition(found.status.conditions, "Available")
        return available is not None and available.reason == "Provisioned"
