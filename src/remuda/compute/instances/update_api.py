"""The route that changes an instance, or tells what that would do. It goes to `Updates`."""

from remuda.compute.instances import schema as wire
from remuda.compute.instances import update_handlers
from remuda.compute.names import INSTANCE, InstancePath
from remuda.compute.permissions import permission
from remuda.compute.plans.schema import PlanRead, PlanRefusal
from remuda.http.routes import AnyRoute, OtherAnswer, Route


def routes() -> list[AnyRoute]:
    return [
        Route(
            method="PUT",
            path=INSTANCE,
            name="update_instance",
            summary="Change an instance, or tell what that would do",
            description="Another image rebuilds its server, another flavor or SSH authority replaces it: the root disk "
            "is lost, and addresses and MAC stay. Other user data takes effect when either next happens. With dryRun "
            "the answer is the plan; with the hash of a plan, exactly that plan is done, or the answer is 409 with the "
            "present one. Where the instance or its project's policy demands a plan, 409 without a hash shows it.",
            scope="project",
            permission=permission("instances", "update"),
            path_type=InstancePath,
            query_type=update_handlers.UpdateQuery,
            body_type=wire.InstanceUpdate,
            answer_type=wire.InstanceRead,
            success=202,
            other=OtherAnswer(
                status=200, answer_type=PlanRead, about="With dryRun: what the change would do. Nothing was changed."
            ),
            refusals={409: PlanRefusal},
            is_conditional=True,
            holds_secret=True,  # its user data
            repeated=update_handlers.tell_again,
            handler=update_handlers.update,
        )
    ]
