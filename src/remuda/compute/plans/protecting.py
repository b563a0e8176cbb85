"""Protection: what must not happen to an instance by mistake.

An instance says so itself, or its project's policy does for all of them: whichever demands it counts. Nobody is kept
from anything for good: who may change the instance or the policy can take the protection away first, and that is a
step of its own. What goes because its network or project goes is not asked: whoever deletes those means all of it.
"""

from remuda.compute.kinds.instances import ComputeInstance, Protection
from remuda.compute.kinds.policies import ProjectPolicy
from remuda.kernel.errors import Forbidden
from remuda.resources.conventions import project_of
from remuda.resources.crud import find
from remuda.store.contract import Store


async def policy_of(store: Store, project: str) -> Protection:
    """Return what a project demands of its instances: nothing, if it has never said."""
    found = await find(store, ProjectPolicy, project, marked=False)
    return Protection() if found is None else found.spec


async def protection_of(store: Store, instance: ComputeInstance) -> Protection:
    """Return what an instance is protected from, by itself or by its project."""
    own, policy = instance.spec.protection, await policy_of(store, project_of(instance))
    return Protection(deletion=own.deletion or policy.deletion, plan=own.plan or policy.plan)


async def refuse_if_protected(store: Store, instance: ComputeInstance) -> None:
    """Raise Forbidden if an instance is not to be deleted; the sentence says who can change that, and how."""
    if instance.spec.protection.deletion:
        raise Forbidden(
            "the instance is protected from deletion: set spec.protection.deletion to false, then delete it"
        )
    if (await policy_of(store, project_of(instance))).deletion:
        raise Forbidden(
            "the policy of its project protects every instance from deletion: have deletion set to false in the "
            "project's policy, then delete it"
        )
