"""Orphans: what a provider has of ours although no object of ours stands for it.

There is one record for each, whose name follows from where the thing is, so that nobody records it twice. It stays for
as long as the thing is there and nobody's.

Whoever is about to make it an object again, or to remove it, says so on the record before: the second to come reads
what the first is about, and a server is not removed under the hands of its new object.

What the monitor remembers of the servers at a region's provider, so that it need not look at all after a start.
"""

from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import replace

from remuda.kernel.ids import derived_id
from remuda.providers.contract.common import Handle, id_in, uid_in
from remuda.providers.contract.provider import EventSubject
from remuda.region.kinds.common import REMUDA_GROUP, VERSION
from remuda.resources import conventions as regional
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Metadata, Resource, StoredStruct

OrphanCause = Literal["ObjectUnknown", "ObjectLetGo", "ObjectAbandoned", "Superseded"]
"""Why it is nobody's: our store knows nothing of its object; its object was deleted, and the provider had nothing more;
an operator let its object go without it; its object has another server in its place."""
OrphanClaim = Literal["adoption", "removal"]
"""What somebody is about to do with it. One excludes the other."""
_ADOPTION_TAKES = timedelta(minutes=5)
"""Far longer than a request: who said so before is no longer at it. A removal has no end before the thing is gone."""

ADDRESSED_SUBJECTS: frozenset[EventSubject] = frozenset({"port", "balancer"})
"""What has an address on its network."""


class OrphanSpec(StoredStruct, frozen=True):
    """What and where it is."""

    subject: EventSubject
    provider_name: str
    """What it is called at its provider."""
    first_seen: datetime
    why: OrphanCause
    tenancy: str = ""
    """The tenancy that has it; empty for what is in none."""
    object_id: str = ""
    """The id of the object that it was made for, as its name tells."""
    object_uid: str = ""
    """Which incarnation of that object."""
    reason: str = ""
    """What the operator said who let its object go without it."""
    claim: OrphanClaim | None = None
    claimed_at: datetime | None = None

    @property
    def handle(self) -> Handle:
        return Handle(self.tenancy, self.provider_name)

    @property
    def has_address(self) -> bool:
        """It has an address on its network, which nobody else may have before it is gone."""
        return self.subject in ADDRESSED_SUBJECTS

    def is_claimed(self, claim: OrphanClaim, now: datetime) -> bool:
        """Tell whether somebody is about to do this with it."""
        if self.claim != claim or self.claimed_at is None:
            return False
        return claim == "removal" or now < self.claimed_at + _ADOPTION_TAKES


class Orphan(Resource, frozen=True):
    """Something at a provider that is nobody's. A label says of which region."""

    spec: OrphanSpec


def orphan_id(region: str, subject: EventSubject, handle: Handle) -> str:
    """Return the id of the record of something at a provider."""
    return derived_id(region, f"{subject}/{handle.tenancy}/{handle.name}")


def claimed(orphan: Orphan, claim: OrphanClaim, now: datetime) -> Orphan:
    """Return a record that says what somebody is about to do."""
    return replace(orphan, spec=replace(orphan.spec, claim=claim, claimed_at=now.replace(microsecond=0)))


def new_orphan(
    region: str, subject: EventSubject, handle: Handle, why: OrphanCause, seen: datetime, *, reason: str = ""
) -> Orphan:
    """Return the record of something that is nobody's."""
    return Orphan(
        metadata=Metadata(name=orphan_id(region, subject, handle), labels={regional.REGION: region}),
        spec=OrphanSpec(
            subject=subject,
            tenancy=handle.tenancy,
            provider_name=handle.name,
            object_id=id_in(handle.name),
            object_uid=uid_in(handle.name),
            first_seen=seen.replace(microsecond=0),
            why=why,
            reason=reason,
        ),
    )


ORPHAN = Kind(
    type=Orphan,
    group=REMUDA_GROUP,
    version=VERSION,
    plural="orphans",
    indexes=(Index(name="object", values=lambda orphan: [orphan.spec.object_id] if orphan.spec.object_id else []),),
    columns={"Subject": ".spec.subject", "Provider name": ".spec.providerName", "Why": ".spec.why"},
)
"""Orphans, found by the label of their region, and by the object that they were made for."""


class SightingDigestSpec(StoredStruct, frozen=True):
    """What was last seen."""

    digests: str = ""
    """In base64, one number for each part of the servers, made of their names and versions."""


class SightingDigest(Resource, frozen=True):
    """The servers of the region whose id is its name."""

    spec: SightingDigestSpec = SightingDigestSpec()


SIGHTING_DIGEST = Kind(type=SightingDigest, group=REMUDA_GROUP, version=VERSION, plural="sightingdigests")
"""One for each region that the monitor has looked at."""
