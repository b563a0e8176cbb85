"""The rooms of compute over their ports."""

from remuda.compute.catalogue.service import Catalogue
from remuda.compute.history.service import History
from remuda.compute.instances.actions import Verbs
from remuda.compute.instances.making import leftover_breaker
from remuda.compute.instances.matching import Matches
from remuda.compute.instances.service import Instances
from remuda.compute.instances.updates import Updates
from remuda.compute.monitor.orphans import stray_breaker
from remuda.compute.policies.service import Policies
from remuda.compute.ports import ComputePorts
from remuda.compute.recovery.service import Recovery
from remuda.compute.service import Compute
from remuda.operations.service import Operations
from remuda.version import release


def rooms(ports: ComputePorts, operations: Operations) -> Compute:
    """Return all of them."""
    store, clock, region = ports.store, ports.clock, ports.region
    instances = Instances(
        store=store,
        clock=clock,
        identity=ports.identity,
        region=region,
        operations=operations,
    )
    return Compute(
        catalogue=Catalogue(region=region, settings=ports.settings, version=release()),
        instances=instances,
        updates=Updates(instances),
        verbs=Verbs(instances=instances, region=region, matches=Matches.over(region, ports.metrics), log=ports.log),
        policies=Policies(store=store, identity=ports.identity),
        history=History(
            store=store, log=ports.log, clock=clock, sealer=ports.sealer, region=region, operations=operations
        ),
        recovery=Recovery(breakers=(leftover_breaker(ports.reconciling), stray_breaker(ports.reconciling))),
    )
