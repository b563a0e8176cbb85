"""What region is asked to do to a server, so that it becomes what its instance wants.

What the server was last asked to be is compared with what is wanted now, never with what is observed; the plan that
people see comes from the same decision. One thing is asked for in each pass, and everything may be asked for again: a
change says all of what is wanted, and a replacement is named after what it is for. Whoever decides late, on a wish that
was taken back or beside another who controls, is refused: each says which revision of the server it has seen.

Making the server of an instance that has none: once it is clear that it should have one, and that there is room.

What an earlier instance of the name has left behind goes first. A server that vanished is looked for twice and then
made again, while its network is there. What it costs is held for good before anything is asked for.

Keeping the server of an instance as it is wanted, and showing how it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from remuda.access.principal import Context
from remuda.compute.instances.rules import (
    charge_for,
    desired_server,
    incarnation_of,
    is_requested,
    last_requested,
    message_of,
    reason_of,
)
from remuda.compute.instances.server_lookup import servers_naming
from remuda.compute.instances.status import (
    UNTOLD,
    Anew,
    is_being_changed,
    is_rebuilding,
    is_to_be_anew,
    is_under_way,
    is_untold,
    moved,
    projected,
    rebuild_under_way,
    takes_images,
    with_rebuild_ended,
    with_rebuilding,
)
from remuda.compute.kinds import ComputeInstance
from remuda.compute.plans.diff import Field, StepKind, changed_fields, decide, with_fields
from remuda.compute.ports import IdentityPort, RegionClient, is_deleting
from remuda.kernel.clock import Clock
from remuda.kernel.errors import (
    AlreadyExists,
    Conflict,
    InsufficientCapacity,
    Invalid,
    NotFound,
    OwnerRejected,
    PreconditionFailed,
    ReferenceRejected,
    RemudaError,
    ResponseNotStored,
    Unavailable,
)
from remuda.kernel.ids import derived_id
from remuda.providers.absence import AbsenceTracker
from remuda.quota.reservation import confirm_quota, is_charged, payer_of, with_charged
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue, Result
from remuda.region.servers.schema import ReplaceWrite, ServerCreate, ServerRead, ServerSpecWire, ServerUpdate
from remuda.resources.conventions import PAYING_CREATOR, network_of
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

REJECTION_REASONS = frozenset({"NoCapacity", "DependencyNotFound", "Errored"})
"""The reasons for which an instance is not made what is wanted, as `refusal_of` has them."""

_NO_ROOM = (
    "the region has no room for its new flavor now: its old server runs on, and is replaced as soon as there is room; "
    "give the instance its old flavor again if that is not wanted any more"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, and the server as region has it since."""

    server: ServerRead
    fields: tuple[Field, ...]
    """What is to become another; nothing, if what was wanted in vain is taken back."""
    anew: Anew | None = None
    """Whether the server is made anew by it, and how."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks."""

    region: RegionClient
    _refused: dict[str, int] = field(default_factory=dict)
    """How often a replacement was refused, by the uid of the instance: what is asked for after that is another one.

    Under the same id region would go through every earlier try, each time, and it may be refused for weeks.
    """

    async def converge(self, instance: ComputeInstance, server: ServerRead) -> Asked | None:
        """Ask for what brings a server nearer to what is wanted; None if it was asked to be that before.

        Raises what region says, if it refuses.
        """
        desired, requested = desired_server(instance), last_requested(server)
        if not changed_fields(requested, desired):
            return None
        steps = dict(decide(requested, desired, takes_images=takes_images(server)))
        if "replace" not in steps:
            return await self._change(instance, server, desired, steps)
        if "in-place" in steps:
            in_place = with_fields(desired, requested, steps["replace"])
            return await self._change(instance, server, in_place, {"in-place": steps["in-place"]})
        return await self._replace(instance, server, steps["replace"])

    def forget(self, instance: ComputeInstance) -> None:
        """Remember nothing of an instance that is gone."""
        self._refused.pop(instance.uid, None)

    async def _change(
        self,
        instance: ComputeInstance,
        server: ServerRead,
        desired: ServerCreate,
        steps: dict[StepKind, tuple[Field, ...]],
    ) -> Asked:
        context, body = await self._context(instance), server_update(desired)
        try:
            changed = await self.region.api.update_server(
                context, server.metadata.id, body, revision=server.status.revision
            )
        except PreconditionFailed:
            raise Conflict("Server", server.metadata.id) from None  # somebody else asks, who may know a later wish
        fields = tuple(each for step in steps.values() for each in step)
        if changed_fields(last_requested(changed), desired):  # or it would be asked for again and again
            raise Invalid(", ".join(fields), "was asked of region, which shows it otherwise", remedy="choose another")
        return Asked(changed, fields, "Rebuilding" if "rebuild" in steps else None)

    async def _replace(self, instance: ComputeInstance, server: ServerRead, fields: tuple[Field, ...]) -> Asked:
        refused, spec = self._refused.get(instance.uid, 0), desired_server(instance).spec
        context = await self._context(instance, replacement_id(instance, server, refused))
        body = ReplaceWrite(
            flavor_id=spec.flavor_id,
            image_id=spec.image_id,
            user_data=spec.user_data,
            ssh_certificate_authority_id=spec.ssh_certificate_authority_id,
        )
        try:
            replaced = await self.region.api.replace_server(
                context, server.metadata.id, body, revision=server.status.revision
            )
        except PreconditionFailed:
            raise Conflict("Server", server.metadata.id) from None  # likewise
        except ResponseNotStored:
            raise Unavailable("The replacement was asked for before, and is not seen yet: look again.") from None
        except RemudaError as error:
            if not error.retry:
                self._refused[instance.uid] = refused + 1
            raise
        self._refused.pop(instance.uid, None)
        if replaced.status.replacements < server.status.replacements:
            return Asked(replaced, ())
        return Asked(replaced, fields, "Replacing")

    async def _context(self, instance: ComputeInstance, operation: str | None = None) -> Context:
        return await writing_for(self.region, instance, operation)


async def writing_for(region: RegionClient, instance: ComputeInstance, operation: str | None = None) -> Context:
    """Return the context of a write to the server of an instance, which is carried out once for an operation."""
    payer, actor = payer_of(instance), instance.metadata.annotations.get(PAYING_CREATOR, "")
    return await region.caller.as_service(payer.organization, payer.project, actor=actor, operation=operation)


def replacement_id(instance: ComputeInstance, server: ServerRead, refused: int) -> str:
    """Return the operation of a replacement: the same for the same change, and another one after each rejection."""
    before = f"{server.spec.flavor_id}/{server.spec.image_id}/{server.status.ssh_certificate_authority_id}"
    return derived_id(instance.uid, f"replace/{instance.metadata.generation}/{before}/{refused}")


def server_update(desired: ServerCreate) -> ServerUpdate:
    """Return the update of an existing server, which leaves out what can only be set by a create or replacement."""
    spec = desired.spec
    return ServerUpdate(
        metadata=desired.metadata,
        spec=ServerSpecWire(
            flavor_id=spec.flavor_id, image_id=spec.image_id, networking=spec.networking, user_data=spec.user_data
        ),
    )


def refusal_of(error: RemudaError) -> Blocked:
    """Return what to say where region will not do it as it was asked; what a retry may cure is raised again."""
    if error.retry:
        raise error
    if isinstance(error, InsufficientCapacity):
        return Blocked("NoCapacity", _NO_ROOM)
    is_missing = isinstance(error, NotFound | ReferenceRejected | OwnerRejected)
    return Blocked("DependencyNotFound" if is_missing else "Errored", error.message.rstrip("."))


NET_S = 10.0
"""When to look again at what region does: the watch of servers tells at once, and this is for what it has missed."""

Step = Result | Outcome[ComputeInstance]
"""What comes of a step."""

_BEING_MADE = Requeue(NET_S, message="its server is being made", report_after_s=UNTOLD.total_seconds())


def leftover_breaker(ports: ReconcilePorts) -> DeletionGuard:
    """Return what keeps the servers of earlier instances from being removed by the dozen."""
    return DeletionGuard("leftovers", ComputeInstance, ports=ports)


def made_again(instance: ComputeInstance, run: ReconcileContext, why: str) -> Record:
    """Return the entry for a server that is made again: it starts from its image, and runs, whatever it was before."""
    return run.event(instance, "MadeAgain", why=why, lost="disk", was=instance.status.power_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """Makes servers."""

    store: Store
    identity: IdentityPort
    region: RegionClient
    absences: AbsenceTracker
    breaker: DeletionGuard
    _unanswered: set[str] = field(default_factory=set)
    """The uids of instances whose server was asked for without an answer: it may yet come to be."""

    async def clear(self, instance: ComputeInstance, leftovers: Sequence[ServerRead], run: ReconcileContext) -> Step:
        """Remove what an earlier instance of the name has left behind: it has the id of the server to be made."""
        waiting = Requeue(NET_S, "ServerDeleting", "what an earlier instance of its name left behind is being removed")
        standing = [each for each in leftovers if not is_deleting(each)]
        if not standing:
            return waiting
        stopped = await self.breaker.allow(instance, run)
        if stopped is not None:
            return stopped
        for server in standing:
            await self.region.delete_server(server.metadata.id, payer_of(instance))
        entries = [
            run.event(instance, "LeftoverRemoved", server=each.metadata.id, of=incarnation_of(each))
            for each in standing
        ]
        return Outcome(waiting, instance, entries)

    async def make(self, instance: ComputeInstance, run: ReconcileContext) -> Step:
        """Ask for a server."""
        held = await self._kept_from(instance) or await confirm_quota(self.identity, charge_for(instance))
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
        self.clear_pending(instance)
        if not instance.status.has_server:
            return _BEING_MADE
        why = "it was not there any more, and nobody had asked us for that"
        return Outcome(_BEING_MADE, instance, [made_again(instance, run, why)])

    def clear_pending(self, instance: ComputeInstance) -> None:
        """Record that the server of an instance exists."""
        self._unanswered.discard(instance.uid)
        self.absences.clear(instance.uid)

    def record_missing(self, instance: ComputeInstance) -> bool:
        """Record that a server is missing; return whether a create without a response may still take effect."""
        return instance.uid in self._unanswered and not self.absences.record_missing(instance.uid)

    async def _kept_from(self, instance: ComputeInstance) -> Result | None:
        """Return why no server is made, or not yet."""
        network = await self.region.find_network(network_of(instance))
        if network is None:
            return Blocked("NetworkGone", "its network is gone")
        if is_deleting(network):
            return Blocked("NetworkDeleting", "its network is being deleted, and takes it along")
        if instance.status.has_server and not self.absences.record_missing(instance.uid):
            return Requeue(self.absences.delay_s, "ServerVanished", "its server is not there, looking for it once more")
        return None

    async def _check_wanted(self, instance: ComputeInstance) -> None:
        """Raise Conflict if an instance goes by now, or is gone: who slept would make a server that is nobody's."""
        found = await find(self.store, ComputeInstance, instance.name, include_deleting=False)
        if found is None or found.uid != instance.uid:
            raise Conflict("ComputeInstance", instance.name)

    async def _create(self, instance: ComputeInstance, run: ReconcileContext) -> None:
        """Ask for the server, each time anew: there is one of its id at most, and it says whose it is."""
        self._unanswered.add(instance.uid)
        await self.region.api.create_server(await writing_for(self.region, instance, run.id), desired_server(instance))

    async def _taken(self, instance: ComputeInstance) -> Result:
        """Say what to do about a server that has the id: ours, if an answer was lost, or somebody else's."""
        if await servers_naming(self.region, instance):
            return Requeue(0, message=_BEING_MADE.message, report_after_s=_BEING_MADE.report_after_s)
        self._unanswered.discard(instance.uid)
        return Blocked("NameTaken", "a server that is not its own has its name on its network")


_USUAL = {"", "Changed", "Pending", "Provisioning", "Provisioned"}
_BEING_CHANGED = "its server is being changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Keeps servers."""

    clock: Clock
    asking: Asking

    async def keep(self, instance: ComputeInstance, server: ServerRead, run: ReconcileContext) -> Step:
        """Look after a server that is there. What it costs was held for good before it was asked for."""
        if is_untold(instance, self.clock.now()) and is_under_way(server) and is_requested(instance, server):
            return replace(_waiting(instance, server), report_after_s=UNTOLD.total_seconds())
        outcome = await self._outcome(instance, server, run)
        return replace(
            outcome,
            status_events=[*_news(instance, server, run), *outcome.status_events, *_moved(instance, outcome, run)],
        )

    async def _outcome(
        self, instance: ComputeInstance, server: ServerRead, run: ReconcileContext
    ) -> Outcome[ComputeInstance]:
        known = instance if is_charged(instance) else with_charged(instance, self.clock)
        try:
            asked = await self.asking.converge(instance, server)
        except RemudaError as error:
            return Outcome(refusal_of(error), projected(known, server, self.clock.now()))
        if asked is not None:
            run.acted = True
            return self._told(known, server, asked, run)
        return self._under_way(known, server) if is_under_way(server) else self._ended(known, server, run)

    def _told(
        self, instance: ComputeInstance, before: ServerRead, asked: Asked, run: ReconcileContext
    ) -> Outcome[ComputeInstance]:
        now, server = self.clock.now(), asked.server
        facts = {"fields": list(asked.fields), "server": server.metadata.id}
        if asked.anew is None:
            entry = run.event(instance, "ServerChanged" if asked.fields else "TakenBack", **facts)
            is_all = bool(asked.fields) and is_requested(instance, server)
            if is_all and not is_under_way(server):  # what was changed means nothing to its provider
                return replace(self._ended(instance, server, run), effect_events=[entry])
            return Outcome(Requeue(NET_S, message=_BEING_CHANGED), projected(instance, server, now), [entry])
        entry = run.event(
            instance,
            asked.anew,
            **facts,
            flavor=server.spec.flavor_id,
            image=server.spec.image_id,
            was={"flavor": before.spec.flavor_id, "image": before.spec.image_id},
        )
        begun = with_rebuilding(instance, asked.anew, server, now)
        return Outcome(Requeue(NET_S, "Rebuilding", "its server is made anew"), projected(begun, server, now), [entry])

    def _under_way(self, instance: ComputeInstance, server: ServerRead) -> Outcome[ComputeInstance]:
        """Show how far region is with what was asked for."""
        now, said = self.clock.now(), rebuild_under_way(instance)
        if not is_rebuilding(instance, server):
            return Outcome(_waiting(instance, server), projected(instance, server, now))
        how: Anew = "Replacing" if said is not None and said.reason == "Replacing" else "Rebuilding"
        seen = projected(with_rebuilding(instance, how, server, now), server, now)
        return Outcome(Requeue(NET_S, "Rebuilding", f"its server is made anew: {_message(server)}"), seen)

    def _ended(self, instance: ComputeInstance, server: ServerRead, run: ReconcileContext) -> Outcome[ComputeInstance]:
        """Show what has come of it."""
        now, rebuild = self.clock.now(), rebuild_under_way(instance)
        has_failed = server.metadata.provisioning_status == "error"
        news = []
        if rebuild is not None or is_to_be_anew(instance):
            event, message = ("RebuildFailed", _message(server)) if has_failed else ("Rebuilt", "it was made anew")
            news.append(run.event(instance, event, server=server.metadata.id, message=message))
            instance = with_rebuild_ended(instance, "Failed" if has_failed else "Rebuilt", message, now)
        return Outcome(_failure(server) if has_failed else Done(), projected(instance, server, now), status_events=news)


def _news(instance: ComputeInstance, server: ServerRead, run: ReconcileContext) -> list[Record]:
    """Return what its server tells for the first time: that it is there, or that it was gone meanwhile."""
    if not instance.status.has_server:
        return [run.event(instance, "ServerMade", server=server.metadata.id)]
    if server.status.times_made_again <= instance.status.remade:
        return []
    why = "it was gone from its provider, and nobody had asked us for that"
    return [made_again(instance, run, why)]


def _moved(before: ComputeInstance, outcome: Outcome[ComputeInstance], run: ReconcileContext) -> list[Record]:
    """Return what its addresses were and are now, if they have become others."""
    changes = moved(before.status, outcome.resource.status)
    return [run.event(before, "AddressesChanged", changes=changes)] if changes else []


def _waiting(instance: ComputeInstance, server: ServerRead) -> Requeue:
    """Return what a server waits for, where that is more than its turn."""
    if reason_of(server) not in _USUAL:
        return Requeue(NET_S, reason_of(server), _message(server))
    if not is_being_changed(instance, server):
        return Requeue(NET_S, message="its server is being made")
    how_far = message_of(server) if reason_of(server) == "Provisioning" else ""
    return Requeue(NET_S, message=how_far or _BEING_CHANGED)


def _failure(server: ServerRead) -> Blocked:
    """Return why a server has failed, in region's own word where it has one."""
    return Blocked("Errored" if reason_of(server) in _USUAL else reason_of(server), _message(server))


def _message(server: ServerRead) -> str:
    return message_of(server) or "nobody says how far it is"
