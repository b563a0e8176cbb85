"""The controller of instances, and what wakes it: instances, their operations, and (`following`) their servers."""

from remuda.compute.instances.controller import InstanceController, ambiguities
from remuda.compute.instances.convergence import Asking
from remuda.compute.instances.keeping import Keeping
from remuda.compute.instances.making import Making, leftover_breaker
from remuda.compute.kinds.instances import INSTANCE, ComputeInstance
from remuda.compute.ports import ComputePorts
from remuda.operations.kinds import Operation
from remuda.providers.absence import Absences
from remuda.quota.sagas import about
from remuda.reconcile.controller import Driver
from remuda.reconcile.lifecycle import Lifecycle
from remuda.reconcile.sources import Source
from remuda.resources.conventions import IN_CARE


def driver(ports: ComputePorts) -> Driver:
    """Return the controller of instances. Have `Following` done beside it, or it hears nothing of their servers."""
    reconciling = ports.reconciling
    breaker = leftover_breaker(reconciling)
    instances = InstanceController(
        store=reconciling.store,
        identity=ports.identity,
        region=ports.region,
        making=Making(
            store=reconciling.store,
            identity=ports.identity,
            region=ports.region,
            absences=Absences(ports.clock, apart_s=ports.settings.look_again.total_seconds()),
            breaker=breaker,
        ),
        keeping=Keeping(clock=ports.clock, asking=Asking(ports.region)),
        ambiguous=ambiguities(ports.metrics),
    )
    return Driver(
        "instances",
        Lifecycle(
            ComputeInstance,
            provision=instances.provision,
            deprovision=instances.deprovision,
            finalizer=IN_CARE,
            ports=reconciling,
        ),
        kind=ComputeInstance,
        ports=reconciling,
        sources=(
            Source(ComputeInstance),
            Source(Operation, when=lambda operation: operation.phase, keys=about(INSTANCE)),
        ),
        breakers=(breaker,),
        settings=ports.control.for_many(),
    )
