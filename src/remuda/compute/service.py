"""The compute service: its rooms, each with a port of its own."""

from dataclasses import dataclass

from remuda.compute.catalogue.service import Catalogue
from remuda.compute.history.service import History
from remuda.compute.instances.actions import Verbs
from remuda.compute.instances.service import Instances
from remuda.compute.instances.updates import Updates
from remuda.compute.policies.service import Policies
from remuda.compute.recovery.service import Recovery


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """All rooms."""

    catalogue: Catalogue
    instances: Instances
    updates: Updates
    verbs: Verbs
    policies: Policies
    history: History
    recovery: Recovery
