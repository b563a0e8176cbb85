"""What region is asked to do to a server, so that it becomes what its instance wants.

What the server was last asked to be is compared with what is wanted now, never with what is observed; the plan that
people see comes from the same decision. One thing is asked for in each pass, and everything may be asked for again: a
change says all of what is wanted, and a replacement is named after what it is for. Whoever decides late, on a wish that
was taken back or beside another who controls, is refused: each says which revision of the server it has seen.
"""

from dataclasses import dataclass, field, replace

from remuda.compute.instances.rules import facts_of
from remuda.compute.instances.status import Anew, takes_images
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.plans.diff import Field, StepKind, decide
from remuda.compute.ports import RegionPort
from remuda.compute.seen import Replacement, ServerFacts, ServerSeen, ServerWanted
from remuda.compute.tags import RESERVED
from remuda.kernel.errors import (
    AnswerNotKept,
    Conflict,
    Invalid,
    NoRoom,
    NotFound,
    OwnerRefused,
    PreconditionFailed,
    ReferenceRefused,
    RemudaError,
    Unavailable,
)
from remuda.kernel.ids import derived_id
from remuda.quota.reservation import payer_of
from remuda.reconcile.results import Blocked
from remuda.resources.conventions import NAME, PAYING_CREATOR, network_of

REFUSALS = frozenset({"NoCapacity", "DependencyNotFound", "Errored"})
"""The reasons for which an instance is not made what is wanted, as `refusal_of` has them."""

_NO_ROOM = (
    "the region has no room for its new flavor now: its old server runs on, and is replaced as soon as there is room; "
    "give the instance its old flavor again if that is not wanted any more"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, and the server as region has it since."""

    server: ServerSeen
    fields: tuple[Field, ...]
    """What is to become another; nothing, if what was wanted in vain is taken back."""
    anew: Anew | None = None
    """Whether the server is made anew by it, and how."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks."""

    region: RegionPort
    _refused: dict[str, int] = field(default_factory=dict)
    """How often a replacement was refused, by the uid of the instance: what is asked for after that is another one.

    Under the same id region would go through every earlier try, each time, and it may be refused for weeks.
    """

    async def converge(self, instance: ComputeInstance, server: ServerSeen) -> Asked | None:
        """Ask for what brings a server nearer to what is wanted; None if it was asked to be that before.

        Raises what region says, if it refuses.
        """
        wanted, there = facts_of(instance), comparable(server.facts)
        if wanted == there:
            return None
        steps = dict(decide(there, wanted, takes_images=takes_images(server)))
        if "replace" not in steps:
            return await self._change(instance, server, wanted, steps)
        if "in-place" in steps:
            kept = replace(
                wanted, flavor=there.flavor, image=there.image, authority=there.authority, user_data=there.user_data
            )
            return await self._change(instance, server, kept, {"in-place": steps["in-place"]})
        return await self._replace(instance, server, steps["replace"])

    def forget(self, instance: ComputeInstance) -> None:
        """Remember nothing of an instance that is gone."""
        self._refused.pop(instance.uid, None)

    async def _change(
        self,
        instance: ComputeInstance,
        server: ServerSeen,
        facts: ServerFacts,
        steps: dict[StepKind, tuple[Field, ...]],
    ) -> Asked:
        wanted = replace(wanted_server(instance, facts, server.id), revision=server.revision)
        try:
            changed = await self.region.change_server(wanted)
        except PreconditionFailed:
            raise Conflict("Server", server.id) from None  # somebody else asks, who may know a later wish
        fields = tuple(each for step in steps.values() for each in step)
        if comparable(changed.facts) != facts:  # or it would be asked for again and again
            raise Invalid(", ".join(fields), "was asked of region, which shows it otherwise", remedy="choose another")
        return Asked(changed, fields, "Rebuilding" if "rebuild" in steps else None)

    async def _replace(self, instance: ComputeInstance, server: ServerSeen, fields: tuple[Field, ...]) -> Asked:
        there, spec = server.facts, instance.spec
        what = f"replace/{instance.metadata.generation}/{there.flavor}/{there.image}/{there.authority}"
        wanted = Replacement(
            server=server.id,
            flavor=spec.flavor_id,
            image=spec.image_id,
            user_data=spec.user_data,
            authority=spec.ssh_certificate_authority_id,
            payer=payer_of(instance),
            operation=derived_id(instance.uid, f"{what}/{self._refused.get(instance.uid, 0)}"),
            actor=_actor(instance),
            revision=server.revision,
        )
        try:
            replaced = await self.region.replace_server(wanted)
        except PreconditionFailed:
            raise Conflict("Server", server.id) from None  # likewise
        except AnswerNotKept:
            raise Unavailable("The replacement was asked for before, and is not seen yet: look again.") from None
        except RemudaError as error:
            if not error.retry:
                self._refused[instance.uid] = self._refused.get(instance.uid, 0) + 1
            raise
        self._refused.pop(instance.uid, None)
        if replaced.replacements < server.replacements:
            return Asked(replaced, ())
        return Asked(replaced, fields, "Replacing")


def is_asked_for(instance: ComputeInstance, server: ServerSeen) -> bool:
    """Tell whether a server was last asked to be what is wanted now."""
    return facts_of(instance) == comparable(server.facts)


def wanted_server(instance: ComputeInstance, facts: ServerFacts, server: str) -> ServerWanted:
    """Return how the server of an instance is asked for."""
    return ServerWanted(
        id=server,
        name=instance.metadata.labels[NAME],
        network=network_of(instance),
        facts=facts,
        payer=payer_of(instance),
        actor=_actor(instance),
    )


def refusal_of(error: RemudaError) -> Blocked:
    """Return what to say where region will not do it as it was asked; what a retry may cure is raised again."""
    if error.retry:
        raise error
    if isinstance(error, NoRoom):
        return Blocked("NoCapacity", _NO_ROOM)
    is_missing = isinstance(error, NotFound | ReferenceRefused | OwnerRefused)
    return Blocked("DependencyNotFound" if is_missing else "Errored", error.sentence.rstrip("."))


def _actor(instance: ComputeInstance) -> str:
    return instance.metadata.annotations.get(PAYING_CREATOR, "")


def comparable(facts: ServerFacts) -> ServerFacts:
    """Return what a server was asked to be by us: what other services have written on it is theirs."""
    return replace(facts, tags=tuple(tag for tag in facts.tags if tag[0].startswith(RESERVED)))
