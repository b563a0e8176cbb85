"""Compute's route table: the routes of all its rooms."""

from remuda.compute.catalogue import api as catalogue
from remuda.compute.history import routes as history
from remuda.compute.instances import routes as instances
from remuda.compute.instances import update_api as updates
from remuda.compute.policies import api as policies
from remuda.compute.recovery import api as recovery
from remuda.http.mounting import within
from remuda.http.routes import Table

TABLE = Table(
    "compute",
    title="Compute",
    description="Instances: what they are, what a change would do to them, and what happened to them.",
    routes=[
        *within(lambda compute: compute.catalogue, catalogue.routes()),
        *within(lambda compute: compute.instances, instances.routes()),
        *within(lambda compute: compute.updates, updates.routes()),
        *within(lambda compute: compute.verbs, instances.verb_routes()),
        *within(lambda compute: compute.history, history.routes()),
        *within(lambda compute: compute.policies, policies.routes()),
        *within(lambda compute: compute.recovery, recovery.routes()),
    ],
)
"""The whole API, which `assembly` mounts with a `Compute`."""
