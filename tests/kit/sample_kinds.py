"""The kinds the store is proven with: a pasture with corrals and horses.

A pasture owns corrals and horses. A horse refers to the corral it stands in, and a pasture may refer to its own
favourite horse. A horse has every shape of field that a merge treats differently, and a secret.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from remuda.kernel.conditions import Condition
from remuda.kernel.secrets import Secret
from remuda.store.kinds import Index, Kind, ObjectLimits, Reference, Registry, keyed
from remuda.store.objects import Metadata, OwnerReference, Resource, StoredStruct

GROUP = "test.remuda"
FARM = "test.remuda/farm"
"""Label: the farm of a pasture, in which its pastures are counted."""
MOST_PASTURES = 3
ONE_MEBIBYTE = 1 << 20
"""More than any document may take."""


class PastureSpec(StoredStruct, frozen=True):
    acres: int = 0
    favourite: str | None = None


class Pasture(Resource, frozen=True):
    spec: PastureSpec = PastureSpec()


class CorralSpec(StoredStruct, frozen=True):
    places: int = 1


class Corral(Resource, frozen=True):
    spec: CorralSpec = CorralSpec()


class Shoe(StoredStruct, frozen=True):
    hoof: str
    size: int = 0


class Saddle(StoredStruct, frozen=True):
    maker: str = ""
    size: int = 0


class HorseSpec(StoredStruct, frozen=True):
    colour: str = "bay"
    corrals: tuple[str, ...] = ()
    nicknames: tuple[str, ...] = ()
    feed: Mapping[str, int] = {}
    saddle: Saddle | None = None
    spare_saddles: Mapping[str, Saddle] = {}
    shoes: Annotated[tuple[Shoe, ...], keyed("hoof")] = ()
    brand: Secret | None = None


class HorseStatus(StoredStruct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    place: str = ""


class Horse(Resource, frozen=True):
    spec: HorseSpec = HorseSpec()
    status: HorseStatus = HorseStatus()


PASTURE = Kind(
    type=Pasture,
    group=GROUP,
    version="v1alpha1",
    plural="pastures",
    references=(
        Reference(
            target=f"horses.{GROUP}", names=lambda pasture: [pasture.spec.favourite] if pasture.spec.favourite else []
        ),
    ),
    counted_in=FARM,
)
CORRAL = Kind(type=Corral, group=GROUP, version="v1alpha1", plural="corrals")
HORSE = Kind(
    type=Horse,
    group=GROUP,
    version="v1alpha1",
    plural="horses",
    references=(Reference(target=f"corrals.{GROUP}", names=lambda horse: horse.spec.corrals),),
    indexes=(Index(name="colour", values=lambda horse: [horse.spec.colour]),),
)

REGISTRY = Registry([PASTURE, CORRAL, HORSE], limits=ObjectLimits(default=MOST_PASTURES))

READY = Condition(
    type="Ready", status="True", reason="Fed", message="", last_transition_time=datetime(2030, 1, 1, tzinfo=UTC)
)


def pasture(
    name: str, *, acres: int = 0, labels: Mapping[str, str] | None = None, finalizers: tuple[str, ...] = ()
) -> Pasture:
    metadata = Metadata(name=name, labels=labels or {}, finalizers=finalizers)
    return Pasture(metadata=metadata, spec=PastureSpec(acres=acres))


def corral(name: str, *, owner: OwnerReference | None = None, finalizers: tuple[str, ...] = ()) -> Corral:
    owners = (owner,) if owner else ()
    return Corral(metadata=Metadata(name=name, owner_references=owners, finalizers=finalizers))


def horse(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    owner: OwnerReference | None = None,
    finalizers: tuple[str, ...] = (),
    spec: HorseSpec | None = None,
) -> Horse:
    owners = (owner,) if owner else ()
    metadata = Metadata(name=name, labels=labels or {}, owner_references=owners, finalizers=finalizers)
    return Horse(metadata=metadata, spec=spec or HorseSpec())


def at(place: str, resource: Horse) -> Horse:
    """Return a horse that is somewhere else."""
    return msgspec.structs.replace(resource, status=HorseStatus(place=place))
