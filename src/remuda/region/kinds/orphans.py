"""Records of orphans, and digests of polled servers.

The name of a record is derived from the location of the orphan, so two processes cannot record it twice. An adoption or
deletion is claimed on the record first: of two that conflict, the second one reads the claim of the first.
"""

from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import replace

from remuda.kernel.ids import derived_id
from remuda.providers.contract.common import Handle, id_in, uid_in
from remuda.providers.contract.provider import EventSubject
from remuda.region.kinds.common import REMUDA_GROUP, VERSION
from remuda.resources.conventions import REGION
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Metadata, Resource, StoredStruct

OrphanCause = Literal["ObjectUnknown", "ObjectDeleted", "ObjectAbandoned", "Superseded"]
"""Why a resource is an orphan: the store does not know its object; its object was deleted; an operator abandoned its
object; its object has another server."""
OrphanClaim = Literal["adoption", "removal"]
"""Pending action on an orphan. One excludes the other."""
_ADOPTION_TAKES = timedelta(minutes=5)
"""Lifetime of a claim to adopt, far longer than a request. A claim to remove lasts as long as the record."""

ADDRESSED_SUBJECTS: frozenset[EventSubject] = frozenset({"port", "balancer"})
"""Types of resources that have an address on their network."""


class OrphanSpec(StoredStruct, frozen=True):
    """Location and cause of an orphan."""

    subject: EventSubject
    provider_name: str
    first_seen: datetime
    cause: OrphanCause
    tenancy: str = ""
    """Tenancy at the provider, if it is in one."""
    object_id: str = ""
    """Id of its object, from its name."""
    object_uid: str = ""
    """Uid of its object, from its name."""
    reason: str = ""
    claim: OrphanClaim | None = None
    claimed_at: datetime | None = None

    @property
    def handle(self) -> Handle:
        return Handle(self.tenancy, self.provider_name)

    @property
    def has_address(self) -> bool:
        """Whether it has an address on its network, which stays allocated until it is gone."""
        return self.subject in ADDRESSED_SUBJECTS

    def is_claimed(self, claim: OrphanClaim, now: datetime) -> bool:
        if self.claim != claim or self.claimed_at is None:
            return False
        return claim == "removal" or now < self.claimed_at + _ADOPTION_TAKES


class Orphan(Resource, frozen=True):
    """Resource at a provider that belongs to no object. A label names its region."""

    spec: OrphanSpec


def orphan_id(region: str, subject: EventSubject, handle: Handle) -> str:
    return derived_id(region, f"{subject}/{handle.tenancy}/{handle.name}")


def claimed(orphan: Orphan, claim: OrphanClaim, now: datetime) -> Orphan:
    return replace(orphan, spec=replace(orphan.spec, claim=claim, claimed_at=now.replace(microsecond=0)))


def new_orphan(
    region: str, subject: EventSubject, handle: Handle, cause: OrphanCause, now: datetime, *, reason: str = ""
) -> Orphan:
    return Orphan(
        metadata=Metadata(name=orphan_id(region, subject, handle), labels={REGION: region}),
        spec=OrphanSpec(
            subject=subject,
            tenancy=handle.tenancy,
            provider_name=handle.name,
            object_id=id_in(handle.name),
            object_uid=uid_in(handle.name),
            first_seen=now.replace(microsecond=0),
            cause=cause,
            reason=reason,
        ),
    )


ORPHAN = Kind(
    type=Orphan,
    group=REMUDA_GROUP,
    version=VERSION,
    plural="orphans",
    uncounted="created by the monitor",
    indexes=(Index(name="object", values=lambda orphan: [orphan.spec.object_id] if orphan.spec.object_id else []),),
    columns={"Subject": ".spec.subject", "Provider name": ".spec.providerName", "Why": ".spec.cause"},
)
"""Indexed by the label of the region, and by object."""


class PollDigestSpec(StoredStruct, frozen=True):
    """Digests of the last poll."""

    digests: str = ""
    """Base64 of one number for each part of the servers, computed from names and versions."""


class PollDigest(Resource, frozen=True):
    """Digests of the servers of the region of the same id."""

    spec: PollDigestSpec = PollDigestSpec()


POLL_DIGEST = Kind(
    type=PollDigest, group=REMUDA_GROUP, version=VERSION, plural="polldigests", uncounted="one for each region"
)
