"""Keeping the server of an instance as it is wanted, and showing how it is."""

from dataclasses import dataclass, replace

from remuda.compute.instances.addressing import moved
from remuda.compute.instances.convergence import Asked, Asking, is_asked_for, refusal_of
from remuda.compute.instances.making import NET_S, Step, made_again
from remuda.compute.instances.status import (
    UNTOLD,
    Anew,
    is_being_changed,
    is_rebuilding,
    is_to_be_anew,
    is_under_way,
    is_untold,
    projected,
    rebuild_under_way,
    with_rebuild_ended,
    with_rebuilding,
)
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.seen import ServerSeen
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.quota.reservation import is_charged, with_charged
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.results import Again, Blocked, Done, Run
from remuda.store.logs import Record

_USUAL = {"", "Changed", "Pending", "Provisioning", "Provisioned"}
_BEING_CHANGED = "its server is being changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Keeps servers."""

    clock: Clock
    asking: Asking

    async def keep(self, instance: ComputeInstance, server: ServerSeen, run: Run) -> Step:
        """Look after a server that is there. What it costs was held for good before it was asked for."""
        if is_untold(instance, self.clock.now()) and is_under_way(server) and is_asked_for(instance, server):
            return replace(_waiting(instance, server), patience_s=UNTOLD.total_seconds())
        outcome = await self._outcome(instance, server, run)
        return replace(outcome, news=[*_news(instance, server, run), *outcome.news, *_moved(instance, outcome, run)])

    async def _outcome(self, instance: ComputeInstance, server: ServerSeen, run: Run) -> Outcome[ComputeInstance]:
        known = instance if is_charged(instance) else with_charged(instance, self.clock)
        try:
            asked = await self.asking.converge(instance, server)
        except RemudaError as error:
            return Outcome(refusal_of(error), projected(known, server, self.clock.now()))
        if asked is not None:
            run.acted = True
            return self._told(known, server, asked, run)
        return self._under_way(known, server) if is_under_way(server) else self._ended(known, server, run)

    def _told(self, instance: ComputeInstance, before: ServerSeen, asked: Asked, run: Run) -> Outcome[ComputeInstance]:
        now, server = self.clock.now(), asked.server
        facts = {"fields": list(asked.fields), "server": server.id}
        if asked.anew is None:
            entry = run.entry(instance, "ServerChanged" if asked.fields else "TakenBack", **facts)
            is_all = bool(asked.fields) and is_asked_for(instance, server)
            if is_all and not is_under_way(server):  # what was changed means nothing to its provider
                return replace(self._ended(instance, server, run), entries=[entry])
            return Outcome(Again(NET_S, message=_BEING_CHANGED), projected(instance, server, now), [entry])
        entry = run.entry(
            instance,
            asked.anew,
            **facts,
            flavor=server.facts.flavor,
            image=server.facts.image,
            was={"flavor": before.facts.flavor, "image": before.facts.image},
        )
        begun = with_rebuilding(instance, asked.anew, server, now)
        return Outcome(Again(NET_S, "Rebuilding", "its server is made anew"), projected(begun, server, now), [entry])

    def _under_way(self, instance: ComputeInstance, server: ServerSeen) -> Outcome[ComputeInstance]:
        """Show how far region is with what was asked for."""
        now, said = self.clock.now(), rebuild_under_way(instance)
        if not is_rebuilding(instance, server):
            return Outcome(_waiting(instance, server), projected(instance, server, now))
        how: Anew = "Replacing" if said is not None and said.reason == "Replacing" else "Rebuilding"
        seen = projected(with_rebuilding(instance, how, server, now), server, now)
        return Outcome(Again(NET_S, "Rebuilding", f"its server is made anew: {_message(server)}"), seen)

    def _ended(self, instance: ComputeInstance, server: ServerSeen, run: Run) -> Outcome[ComputeInstance]:
        """Show what has come of it."""
        now, rebuild = self.clock.now(), rebuild_under_way(instance)
        has_failed = server.settling == "error"
        news = []
        if rebuild is not None or is_to_be_anew(instance):
            event, message = ("RebuildFailed", _message(server)) if has_failed else ("Rebuilt", "it was made anew")
            news.append(run.entry(instance, event, server=server.id, message=message))
            instance = with_rebuild_ended(instance, "Failed" if has_failed else "Rebuilt", message, now)
        return Outcome(_failure(server) if has_failed else Done(), projected(instance, server, now), news=news)


def _news(instance: ComputeInstance, server: ServerSeen, run: Run) -> list[Record]:
    """Return what its server tells for the first time: that it is there, or that it was gone meanwhile."""
    if not instance.status.has_server:
        return [run.entry(instance, "ServerMade", server=server.id)]
    if server.remade <= instance.status.remade:
        return []
    why = "it was gone from its provider, and nobody had asked us for that"
    return [made_again(instance, run, why)]


def _moved(before: ComputeInstance, outcome: Outcome[ComputeInstance], run: Run) -> list[Record]:
    """Return what its addresses were and are now, if they have become others."""
    changes = moved(before.status, outcome.resource.status)
    return [run.entry(before, "AddressesChanged", changes=changes)] if changes else []


def _waiting(instance: ComputeInstance, server: ServerSeen) -> Again:
    """Return what a server waits for, where that is more than its turn."""
    if server.reason not in _USUAL:
        return Again(NET_S, server.reason, _message(server))
    if not is_being_changed(instance, server):
        return Again(NET_S, message="its server is being made")
    how_far = server.message if server.reason == "Provisioning" else ""
    return Again(NET_S, message=how_far or _BEING_CHANGED)


def _failure(server: ServerSeen) -> Blocked:
    """Return why a server has failed, in region's own word where it has one."""
    if server.reason in _USUAL:
        return Blocked("Errored", _message(server))
    return Blocked(server.reason, _message(server))


def _message(server: ServerSeen) -> str:
    return server.message or "nobody says how far it is"
