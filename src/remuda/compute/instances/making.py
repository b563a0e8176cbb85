"""Making the server of an instance that has none: once it is clear that it should have one, and that there is room.

What an earlier instance of the name has left behind goes first. A server that vanished is looked for twice and then
made again, while its network is there. What it costs is held for good before anything is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from remuda.compute.instances.convergence import refusal_of, wanted_server
from remuda.compute.instances.paying import charge_for
from remuda.compute.instances.rules import facts_of
from remuda.compute.instances.server_lookup import servers_naming
from remuda.compute.instances.status import UNTOLD
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.ports import IdentityPort, RegionPort
from remuda.compute.seen import ServerSeen
from remuda.kernel.errors import AlreadyExists, Conflict, RemudaError
from remuda.providers.absence import Absences
from remuda.quota.reservation import payer_of, settle_charge
from remuda.reconcile.deletion_guard import Breaker
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.results import Again, Blocked, Result, Run
from remuda.resources.conventions import network_of
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

NET_S = 10.0
"""When to look again at what region does: the watch of servers tells at once, and this is for what it has missed."""

Step = Result | Outcome[ComputeInstance]
"""What comes of a step."""

_BEING_MADE = Again(NET_S, message="its server is being made", patience_s=UNTOLD.total_seconds())


def leftover_breaker(ports: ReconcilePorts) -> Breaker:
    """Return what keeps the servers of earlier instances from being removed by the dozen."""
    return Breaker("leftovers", ComputeInstance, ports=ports)


def made_again(instance: ComputeInstance, run: Run, why: str) -> Record:
    """Return the entry for a server that is made again: it starts from its image, and runs, whatever it was before."""
    return run.entry(instance, "MadeAgain", why=why, lost="disk", was=instance.status.power_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """Makes servers."""

    store: Store
    identity: IdentityPort
    region: RegionPort
    absences: Absences
    breaker: Breaker
    _unanswered: set[str] = field(default_factory=set)
    """The uids of instances whose server was asked for without an answer: it may yet come to be."""

    async def clear(self, instance: ComputeInstance, leftovers: Sequence[ServerSeen], run: Run) -> Step:
        """Remove what an earlier instance of the name has left behind: it has the id of the server to be made."""
        waiting = Again(NET_S, "ServerDeleting", "what an earlier instance of its name left behind is being removed")
        standing = [each for each in leftovers if not each.is_marked]
        if not standing:
            return waiting
        stopped = await self.breaker.allow(instance, run)
        if stopped is not None:
            return stopped
        for server in standing:
            await self.region.delete_server(server.id, payer_of(instance))
        entries = [run.entry(instance, "LeftoverRemoved", server=each.id, of=each.incarnation) for each in standing]
        return Outcome(waiting, instance, entries)

    async def make(self, instance: ComputeInstance, run: Run) -> Step:
        """Ask for a server."""
        held = await self._kept_from(instance) or await settle_charge(self.identity, charge_for(instance))
        if held is not None:
            return held
        await self._check_wanted(instance)
        run.acted = True
        try:
            await self._create(instance, run)
        except AlreadyExists:
            return await self._taken(instance)
        except RemudaError as error:
            refusal = refusal_of(error)
            self._unanswered.discard(instance.uid)
            return refusal
        self.is_there(instance)
        if not instance.status.has_server:
            return _BEING_MADE
        why = "it was not there any more, and nobody had asked us for that"
        return Outcome(_BEING_MADE, instance, [made_again(instance, run, why)])

    def is_there(self, instance: ComputeInstance) -> None:
        """Note that the server of an instance is there."""
        self._unanswered.discard(instance.uid)
        self.absences.is_there(instance.uid)

    def may_come(self, instance: ComputeInstance) -> bool:
        """Note that a server is not there; tell whether it may yet come to be, since an answer is missing."""
        return instance.uid in self._unanswered and not self.absences.is_gone(instance.uid)

    async def _kept_from(self, instance: ComputeInstance) -> Result | None:
        """Return why no server is made, or not yet."""
        network = await self.region.find_network(network_of(instance))
        if network is None:
            return Blocked("NetworkGone", "its network is gone")
        if network.is_marked:
            return Blocked("NetworkDeleting", "its network is being deleted, and takes it along")
        if instance.status.has_server and not self.absences.is_gone(instance.uid):
            return Again(self.absences.apart_s, "ServerVanished", "its server is not there, looking for it once more")
        return None

    async def _check_wanted(self, instance: ComputeInstance) -> None:
        """Raise Conflict if an instance goes by now, or is gone: who slept would make a server that is nobody's."""
        found = await find(self.store, ComputeInstance, instance.name, marked=False)
        if found is None or found.uid != instance.uid:
            raise Conflict("ComputeInstance", instance.name)

    async def _create(self, instance: ComputeInstance, run: Run) -> None:
        """Ask for the server, each time anew: there is one of its id at most, and it says whose it is."""
        self._unanswered.add(instance.uid)
        await self.region.create_server(wanted_server(instance, facts_of(instance), instance.spec.server_id), run.id)

    async def _taken(self, instance: ComputeInstance) -> Result:
        """Say what to do about a server that has the id: ours, if an answer was lost, or somebody else's."""
        if await servers_naming(self.region, instance):
            return Again(0, message=_BEING_MADE.message, patience_s=_BEING_MADE.patience_s)
        self._unanswered.discard(instance.uid)
        return Blocked("NameTaken", "a server that is not its own has its name on its network")
