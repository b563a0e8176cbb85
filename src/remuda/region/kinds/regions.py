"""Regions as they are stored: which cloud, and which of what it has is on offer.

Quantities (memory, disk) are bytes. Passwords are either in a secret of a cluster, named here, or here and sealed.
"""

from remuda.kernel.tags import Tag
from remuda.region.kinds.api_groups import SHARED, VERSION
from remuda.region.kinds.lifecycle import ProviderType
from remuda.region.kinds.region_kubernetes import RegionKubernetes
from remuda.region.kinds.region_openstack import RegionOpenstack
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct


class RegionOrganization(StoredStruct, frozen=True):
    """An organization that may see a region."""

    id: str


class RegionSecurity(StoredStruct, frozen=True):
    """Who may see a region: only these, or everybody if there are none."""

    organizations: tuple[RegionOrganization, ...] = ()


class RegionSimulated(StoredStruct, frozen=True):
    """Where in the simulated cloud a region is."""

    region: str
    """What the cloud calls it."""


class RegionSpec(StoredStruct, frozen=True):
    """What a region is. Of the three blocks, the one that is named by `provider` counts."""

    provider: ProviderType
    security: RegionSecurity | None = None
    openstack: RegionOpenstack | None = None
    kubernetes: RegionKubernetes | None = None
    simulated: RegionSimulated | None = None
    tags: tuple[Tag, ...] = ()

    @property
    def organizations(self) -> frozenset[str]:
        """Who may see it; nobody in particular means everybody."""
        return frozenset(each.id for each in self.security.organizations) if self.security else frozenset()


class RegionStatus(LifecycleStatus, frozen=True):
    """What was last seen of a region's cloud."""


class Region(Resource, frozen=True):
    """A part of a cloud, named by its id; a label says what people call it."""

    spec: RegionSpec
    status: RegionStatus = RegionStatus()


REGION = Kind(
    type=Region,
    group=SHARED,
    version=VERSION,
    plural="regions",
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name", "Provider": ".spec.provider"},
)
"""Regions."""
