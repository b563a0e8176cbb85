"""What an instance is while it is not what is wanted: region refuses that, and its server runs on as it was.

A change is then judged by what stands. To want again what there is destroys nothing, and needs no room.
"""

from dataclasses import dataclass, replace

from remuda.compute.instances.convergence import REFUSALS, comparable
from remuda.compute.instances.rules import facts_of
from remuda.compute.instances.server_lookup import is_ambiguous, servers_naming, sorted_out
from remuda.compute.instances.status import is_kept, takes_images
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.plans.diff import FIELDS
from remuda.compute.ports import RegionPort
from remuda.compute.seen import ServerFacts, ServerSeen
from remuda.kernel.conditions import find_condition
from remuda.reconcile.status import AVAILABLE

_OF_THE_SERVER = frozenset(fact for fact, kind in FIELDS.values() if kind in {"rebuild", "replace"})
"""The facts of which none becomes another without the server being made anew, and then all do."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The server of an instance, as a change finds it."""

    facts: ServerFacts
    """What it was last asked to be; that is what is wanted, unless it was refused."""
    takes_images: bool = True
    """Whether it stays the same server with another image."""


async def standing_of(region: RegionPort, instance: ComputeInstance, *, is_to_be_anew: bool) -> Standing:
    """Return how the server of an instance stands; nobody is asked where that makes no difference to a change."""
    wanted, is_refused = facts_of(instance), _is_refused(instance)
    if not is_refused and not is_to_be_anew:
        return Standing(wanted)
    standing = sorted_out(instance, await servers_naming(region, instance)).standing
    if not standing or is_ambiguous(instance, standing):
        return Standing(wanted)
    return Standing(_facts_of(standing[0], instance) if is_refused else wanted, takes_images(standing[0]))


def facts_before(wanted: ServerFacts, standing: ServerFacts, after: ServerFacts) -> ServerFacts:
    """Return what a change is compared with: what it changes stands as it does, all else was wanted before."""
    facts = [fact for fact, _ in FIELDS.values()]
    changed = {fact for fact in facts if getattr(wanted, fact) != getattr(after, fact)}
    if changed & _OF_THE_SERVER:
        changed |= _OF_THE_SERVER
    return replace(wanted, **{fact: getattr(standing, fact) for fact in changed})


def _facts_of(server: ServerSeen, instance: ComputeInstance) -> ServerFacts:
    """Return what a server was asked to be; if it keeps its place until there is another, what it was before that."""
    facts, applied = comparable(server.facts), instance.status.applied
    if applied is None or not is_kept(server):
        return facts
    authority = applied.ssh_certificate_authority_id
    return replace(facts, flavor=applied.flavor_id, image=applied.image_id, authority=authority)


def _is_refused(instance: ComputeInstance) -> bool:
    """Tell whether region was asked for what is wanted now, and would not do it."""
    said = find_condition(instance.status.conditions, AVAILABLE)
    return said is not None and said.reason in REFUSALS and said.observed_generation == instance.metadata.generation
