"""What a project demands of all its instances, named after the project."""

from remuda.compute.kinds.api_groups import OURS, VERSION
from remuda.compute.kinds.instances import Protection
from remuda.store.kinds import Kind
from remuda.store.objects import Resource


class ProjectPolicy(Resource, frozen=True):
    """A project's policy: it holds for each of its instances, whatever the instance itself says."""

    spec: Protection = Protection()


POLICY = Kind(type=ProjectPolicy, group=OURS, version=VERSION, plural="projectpolicies")
"""Policies, by the ids of their projects."""
