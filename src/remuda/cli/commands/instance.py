"""Commands ``remuda instance list``, ``show``, ``create``, ``plan``, ``update``, ``rebuild`` and ``delete``.

An update or rebuild is sent with the hash of the plan that was shown, so nothing else is carried out. If the instance
has changed meanwhile, the new plan is shown and has to be confirmed again.
"""

import base64
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from cyclopts import Parameter
from msgspec.structs import replace

from remuda.cli.crud import (
    confirm,
    create_resource,
    delete_resource,
    find,
    find_id,
    list_resources,
    show_resource,
    wait_provisioned,
)
from remuda.cli.lookup import DEFAULT_SCOPE, ScopedSession, ScopeOptions
from remuda.cli.offers import find_in_region, list_in_region
from remuda.cli.options import (
    NO_METADATA,
    NO_WAIT,
    Flag,
    MetadataOptions,
    Output,
    WaitOptions,
    Watch,
    Yes,
    checked_prefix,
    read_bytes,
)
from remuda.cli.output import Format, ResourceT, dump, echo, echo_error, terminal_width, write
from remuda.cli.resources import FLAVOR, IMAGE, INSTANCE, NETWORK, SECURITY_GROUP, SSH_CA, ResourceType
from remuda.compute.instances.schema import (
    InstanceCreate,
    InstanceCreateSpec,
    InstanceNetworkingWire,
    InstanceRead,
    InstanceSpecWire,
    InstanceUpdate,
    ProtectionWire,
)
from remuda.compute.plans.schema import PlanAttributeRead, PlanRead, QuotaChangeRead
from remuda.kernel.errors import Invalid, PlanChanged, PlanRequired, RemudaError, Unusable

SpecT = TypeVar("SpecT", bound=InstanceSpecWire)
ResultT = TypeVar("ResultT")


async def list_(
    *, network: str | None = None, watch: Watch = False, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """List the instances of the project.

    Example::

        remuda instance list --network lab

    :param network: List only the instances on this network, by name or id.
    """
    async with scope.open() as api:
        more = {} if network is None else {"networkID": await find_id(api, NETWORK, network)}
        await list_resources(api, INSTANCE, output, watch=watch, more=more)


async def show(instance: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Show an instance.

    Example::

        remuda instance show web -o yaml

    :param instance: Name or id of the instance.
    """
    async with scope.open() as api:
        await _show(api, await find(api, INSTANCE, instance), output)


async def _show(api: ScopedSession, instance: InstanceRead, output: Format) -> None:
    """Print an instance; in a table, with the names of its flavor and image."""
    region, names = instance.status.region_id, dict[str, str]()
    if output == "table":
        names = await _names(api, FLAVOR, region) | await _names(api, IMAGE, region)
    await show_resource(api, INSTANCE, instance, output, names)


async def _names(api: ScopedSession, resource_type: ResourceType[ResourceT], region: str) -> dict[str, str]:
    try:
        found = await list_in_region(api, resource_type, region)
    except RemudaError:
        return {}
    return {each.metadata.id: each.metadata.name for each in found}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class InstanceOptions:
    """Optional settings of an instance. None leaves a setting unchanged."""

    user_data: Annotated[
        Path | None, Parameter(help="Pass this file to cloud-init when the instance starts from a new disk.")
    ] = None
    security_group: Annotated[
        tuple[str, ...] | None,
        Parameter(
            help="Use this security group of the network, by name or id. Repeat it for more groups.",
            negative="--no-security-group",
        ),
    ] = None
    public_ip: Annotated[bool | None, Parameter(help="Assign a public address, or remove it.")] = None
    source: Annotated[
        tuple[str, ...] | None,
        Parameter(
            help="Allow the instance to send from this IPv4 prefix too, such as that of a VPN. Repeat it for more.",
            negative="--no-source",
        ),
    ] = None
    ssh_ca: Annotated[
        str | None, Parameter(help="Accept certificates of this SSH certificate authority, by name or id; '' for none.")
    ] = None
    protect_deletion: Annotated[bool | None, Parameter(help="Protect the instance from deletion.")] = None
    protect_plan: Annotated[
        bool | None,
        Parameter(
            help="Reject an update that would destroy data unless the caller confirms its plan"
            " (see remuda instance plan)."
        ),
    ] = None

    def __post_init__(self) -> None:
        """Reject an invalid prefix before anything is sent."""
        for each in self.source or ():
            checked_prefix("--source", each)

    async def applied(self, api: ScopedSession, spec: SpecT, network: str) -> SpecT:
        if self.user_data is not None:
            content = base64.b64encode(read_bytes(self.user_data, "--user-data")).decode()
            spec = replace(spec, user_data=content)
        if self.ssh_ca is not None:
            authority = await find_id(api, SSH_CA, self.ssh_ca) if self.ssh_ca else None
            spec = replace(spec, ssh_certificate_authority_id=authority)
        if networking := await self._networking(api, network):
            spec = replace(spec, networking=replace(spec.networking or InstanceNetworkingWire(), **networking))
        protection = {"deletion": self.protect_deletion, "plan": self.protect_plan}
        if given := {name: value for name, value in protection.items() if value is not None}:
            spec = replace(spec, protection=replace(spec.protection or ProtectionWire(), **given))
        return spec

    async def _networking(self, api: ScopedSession, network: str) -> dict[str, object]:
        found: dict[str, object] = {}
        if self.security_group is not None:
            query = {"networkID": network}
            groups = [await find_id(api, SECURITY_GROUP, each, query) for each in self.security_group]
            found["security_groups"] = tuple(groups)
        if self.public_ip is not None:
            found["public_ip"] = self.public_ip
        if self.source is not None:
            found["allowed_source_addresses"] = self.source
        return found


UNCHANGED = InstanceOptions()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class InstanceChange:
    """The options of an update. None leaves a setting unchanged."""

    flavor: Annotated[str | None, Parameter(help="Change the flavor, by name or id. This replaces the server.")] = None
    image: Annotated[str | None, Parameter(help="Change the image, by name or id. This rebuilds the server.")] = None
    options: InstanceOptions = UNCHANGED
    metadata: MetadataOptions = NO_METADATA

    async def body(self, api: ScopedSession, instance: InstanceRead) -> InstanceUpdate:
        spec, status = instance.spec, instance.status
        if self.flavor is not None:
            spec = replace(spec, flavor_id=await find_in_region(api, FLAVOR, status.region_id, self.flavor))
        if self.image is not None:
            spec = replace(spec, image_id=await find_in_region(api, IMAGE, status.region_id, self.image))
        spec = await self.options.applied(api, spec, status.network_id)
        return InstanceUpdate(metadata=self.metadata.metadata(instance.metadata.name, instance.metadata), spec=spec)


NO_CHANGE = InstanceChange()


async def create(
    name: str,
    /,
    *,
    network: str,
    flavor: str,
    image: str,
    options: InstanceOptions = UNCHANGED,
    metadata: MetadataOptions = NO_METADATA,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    r"""Create an instance.

    Example::

        remuda instance create web --network lab --flavor sim-small-1 \
            --image ubuntu-22.04-amd64 --public-ip --wait

    :param name: Name of the instance, unique on its network.
    :param network: Connect the instance to this network, by name or id. The instance is in its region.
    :param flavor: Use this flavor, by name or id; see remuda flavor list.
    :param image: Boot from this image, by name or id; see remuda image list.
    """
    async with scope.open() as api:
        project = api.require_project()
        found = await find(api, NETWORK, network)
        region = found.status.region_id
        spec = InstanceCreateSpec(
            organization_id=project.organization,
            project_id=project.project,
            network_id=found.metadata.id,
            flavor_id=await find_in_region(api, FLAVOR, region, flavor),
            image_id=await find_in_region(api, IMAGE, region, image),
        )
        spec = await options.applied(api, spec, found.metadata.id)
        body = InstanceCreate(metadata=metadata.metadata(name), spec=spec)
        await _show(api, await create_resource(api, INSTANCE, body, wait=wait), output)


async def delete(
    instance: str, /, *, yes: Yes = False, wait: WaitOptions = NO_WAIT, scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Delete an instance with its disk and its addresses.

    Example::

        remuda instance delete web --yes --wait

    :param instance: Name or id of the instance.
    """
    async with scope.open() as api:
        lost = " with its disk and its addresses"
        await delete_resource(api, INSTANCE, instance, yes=yes, wait=wait, lost=lost)


_NARROWEST = 40
_THINGS = {
    "id": "id",
    "name": "name",
    "privateIP": "private address",
    "macAddress": "MAC address",
    "publicIP": "public address",
    "rootDisk": "root disk",
    "sshHostKeys": "SSH host keys",
    "memory": "running processes",
}


def plan_text(plan: PlanRead, width: int | None = None) -> str:
    if not plan.steps:
        return "Nothing would change.\n"
    parts = [*_parts(plan)]
    indent = max(len(heading) for heading, _ in parts)
    shown = []
    for heading, lines in parts:
        wrapped = [piece for line in lines for piece in _wrapped(line, None if width is None else width - indent - 2)]
        headings = [heading, *[""] * len(wrapped)]
        shown += [f"{first:<{indent}}  {line}\n" for first, line in zip(headings, wrapped, strict=False)]
    return "".join(shown)


def _wrapped(line: str, width: int | None) -> list[str]:
    return [line] if width is None else textwrap.wrap(line, max(width, _NARROWEST))


def _parts(plan: PlanRead) -> Iterator[tuple[str, Sequence[str]]]:
    yield "Plan", [plan.message]
    for step in plan.steps:
        yield step.kind.capitalize(), [*(change.message for change in step.changes), step.message]
    yield "Lost", [each.message for each in plan.destroyed] or ["Nothing."]
    yield "Survives", [", ".join(_thing(each) for each in plan.preserved) or "Nothing."]
    yield "Downtime", [plan.downtime.message]
    yield "Quota", [_quota(plan.quota)]
    if plan.blockers:
        yield "Blocked", [each.message for each in plan.blockers]
    yield "Hash", [plan.hash]


def _thing(thing: PlanAttributeRead) -> str:
    word = _THINGS.get(thing.attribute, thing.attribute)
    return f"{word} {thing.value}" if thing.value else word


def _quota(changes: Sequence[QuotaChangeRead]) -> str:
    changed = [f"{each.kind} {each.before} -> {each.after} ({each.delta:+})" for each in changes if each.delta]
    if changed:
        return ", ".join(changed)
    used = ", ".join(f"{each.kind} {each.after}" for each in changes if each.after)
    return f"Unchanged ({used})." if used else "None."


_ATTEMPTS = 5


async def plan(
    instance: str,
    /,
    *,
    change: InstanceChange = NO_CHANGE,
    rebuild: Flag = False,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Show what an update or a rebuild would do and cost, without carrying it out.

    Example::

        remuda instance plan web --flavor sim-standard-4

    :param instance: Name or id of the instance.
    :param rebuild: Plan a rebuild from the present image, without any other change.
    """
    if rebuild and change != NO_CHANGE:
        raise Invalid(
            "--rebuild", "plans a rebuild of the instance as it is", remedy="leave out the options of an update"
        )
    async with scope.open() as api:
        found = await find(api, INSTANCE, instance)
        planned = await (_plan_rebuild(api, found) if rebuild else _plan(api, found, await change.body(api, found)))
    if output == "name":
        echo(planned.hash)
    else:
        write(plan_text(planned, terminal_width()) if output == "table" else dump(planned, output))


async def update(
    instance: str,
    /,
    *,
    change: InstanceChange = NO_CHANGE,
    yes: Yes = False,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Update an instance, after showing the plan and asking for confirmation if data would be lost.

    Example::

        remuda instance update web --flavor sim-standard-4 --wait

    :param instance: Name or id of the instance.
    """
    async with scope.open() as api:
        found = await find(api, INSTANCE, instance)
        body, path, name = await change.body(api, found), _path(found), found.metadata.name

        async def apply(plan: str) -> InstanceRead:
            return await api.session.send(
                "PUT", INSTANCE.service, path, body, response_type=InstanceRead, query={"plan": plan}
            )

        report = echo if output == "table" else echo_error
        updated = await carry_out(await _plan(api, found, body), apply, report, yes=yes)
        if updated is None:
            report(f"The instance {name} already matches: nothing was done.")
        reached = await wait_provisioned(api, INSTANCE, updated or found, wait=wait)
        if updated is None and wait.wait:
            report(f"The instance {name} is provisioned.")
        if updated is not None or output != "table":
            await _show(api, reached, output)


async def rebuild(
    instance: str,
    /,
    *,
    yes: Yes = False,
    wait: WaitOptions = NO_WAIT,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Rebuild an instance from its image, after showing the plan and asking for confirmation.

    The data on its root disk is lost; its addresses stay. A broken instance can be repaired like that.

    Example::

        remuda instance rebuild web --wait

    :param instance: Name or id of the instance.
    """
    async with scope.open() as api:
        found = await find(api, INSTANCE, instance)

        async def apply(plan: str) -> InstanceRead:
            return await api.session.send(
                "POST", INSTANCE.service, _rebuild_path(found), response_type=InstanceRead, query={"plan": plan}
            )

        rebuilt = await carry_out(
            await _plan_rebuild(api, found), apply, echo if output == "table" else echo_error, yes=yes
        )
        assert rebuilt is not None, "the plan of a rebuild is never empty"
        await _show(api, await wait_provisioned(api, INSTANCE, rebuilt, wait=wait), output)


async def carry_out(
    planned: PlanRead,
    apply: Callable[[str], Awaitable[ResultT]],
    report: Callable[[str], None],
    *,
    yes: bool,
    ask: Callable[[str], str] | None = None,
) -> ResultT | None:
    """Show a plan, ask for confirmation and apply it; again if the plan has changed. Return None if it is empty."""
    for _ in range(_ATTEMPTS):
        if not planned.steps:
            return None
        report(plan_text(planned, terminal_width()))
        if planned.blockers:
            raise Unusable(f"Nothing was done. {planned.blockers[0].message}")
        if planned.is_destructive:
            confirm(planned.message, yes=yes, ask=ask)
        try:
            return await apply(planned.hash)
        except (PlanChanged, PlanRequired) as error:
            planned = msgspec.json.decode(error.plan, type=PlanRead)
            report("The plan has changed:\n")
    raise Unusable("Another client keeps changing the instance: nothing was done. Coordinate, then try again.")


async def _plan(api: ScopedSession, instance: InstanceRead, body: InstanceUpdate) -> PlanRead:
    return await api.session.send(
        "PUT", INSTANCE.service, _path(instance), body, response_type=PlanRead, query={"dryRun": "true"}
    )


async def _plan_rebuild(api: ScopedSession, instance: InstanceRead) -> PlanRead:
    return await api.session.send(
        "POST", INSTANCE.service, _rebuild_path(instance), response_type=PlanRead, query={"dryRun": "true"}
    )


def _path(instance: InstanceRead) -> str:
    return f"{INSTANCE.path}/{instance.metadata.id}"


def _rebuild_path(instance: InstanceRead) -> str:
    return f"{_path(instance)}/rebuild"
