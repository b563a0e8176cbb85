"""The handlers of a change: each asks the service and renders what it says."""

from typing import Annotated

import msgspec

from remuda.compute.instances import rules
from remuda.compute.instances import schema as wire
from remuda.compute.instances.updates import Updates
from remuda.compute.names import InstancePath
from remuda.compute.plans.schema import PlanHash, PlanRead
from remuda.http.responses import Other, Shown
from remuda.http.routes import Call, Parameters


class UpdateQuery(Parameters, frozen=True, rename={"dry_run": "dryRun"}):
    """How to change an instance."""

    dry_run: Annotated[bool, msgspec.Meta(description="Change nothing, and answer with the plan.")] = False
    plan: (
        Annotated[
            PlanHash,
            msgspec.Meta(description="The hash of the plan that is to be done: if it is another one by now, 409."),
        ]
        | None
    ) = None


_Asked = Call[InstancePath, UpdateQuery, wire.InstanceUpdate]
_Told = Shown[wire.InstanceRead] | Other[PlanRead]


async def update(updates: Updates, call: _Asked) -> _Told:
    """Change an instance, or tell what that would do."""
    context, instance = call.context, call.path.instance
    if call.query.dry_run:
        return Other(await updates.plan(context, instance, call.body))
    return Shown(rules.INSTANCE_VIEW, await updates.update(context, instance, call.body, call.query.plan))


async def tell_again(updates: Updates, call: _Asked) -> _Told:
    """Answer a change that was made before: how the instance stands now, or what the change would do now."""
    if call.query.dry_run:
        return Other(await updates.plan(call.context, call.path.instance, call.body))
    return Shown(rules.INSTANCE_VIEW, await updates.get(call.context, call.path.instance))
