"""The classes of file storage, as they come into the store from what providers offer.

A provider's class becomes an object of ours with an id of its own, since providers of several regions may call their
classes the same. It is written when it is offered otherwise than the store has it. One that is no longer offered is
withdrawn: nobody sees it or makes anything of it, while the storage that is there is still looked after by it.

Operators may write classes, too, with the id that the provider knows; those stay as they are.
"""

import re
from datetime import datetime
from functools import partial

import structlog
from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.kernel.ids import derived_id
from remuda.providers.contract.filestorage import CloudStorageClass
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.catalogue.seed import WITHDRAWN, is_withdrawn
from remuda.region.kinds.common import REMUDA_GROUP
from remuda.region.kinds.filestorage import FileStorageClass, FileStorageClassSpec
from remuda.region.kinds.regions import Region
from remuda.resources import conventions as regional
from remuda.resources.conventions import NAME
from remuda.resources.crud import seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

OFFERED_AS = f"{REMUDA_GROUP}/offered-as"
"""Annotation: what the provider calls a class that it offers."""

_EVERY_S = 300.0
_NO_NAME = re.compile(r"[^0-9A-Za-z_.-]+")
_LONGEST_NAME = 63


def class_id(region: str, offered: str) -> str:
    """Return the id of a class that a region's provider offers under this name."""
    return derived_id(region, f"filestorageclass/{offered}")


def offered_as(found: FileStorageClass) -> str:
    """Return what the provider calls a class."""
    return found.metadata.annotations.get(OFFERED_AS, found.name)


def is_offered(found: FileStorageClass) -> bool:
    """Tell whether new storage can be of a class."""
    return WITHDRAWN not in found.metadata.annotations


async def seed_classes(store: Store, providers: ProviderRegistry, region: Region, *, now: datetime) -> None:
    """Make the classes of a region what its provider offers, if that has file storage."""
    cloud = providers.of_region(region)
    if cloud.provider.file_storages is None:
        return
    offered = await cloud.provider.file_storages.storage_classes()
    wanted = [_stored(region.name, each, cloud.provider.type) for each in offered]
    for each in wanted:
        await seed(store, each, partial(_as_offered, each))
    named = {each.name for each in wanted}
    for found in (await store.list(FileStorageClass, labels={regional.REGION: region.name})).items:
        if OFFERED_AS in found.metadata.annotations and found.name not in named and is_offered(found):
            await seed(store, found, partial(_withdrawn, now=now))


class ClassKeeper:
    """Keeps the classes of all regions what their providers offer."""

    def __init__(self, store: Store, providers: ProviderRegistry, *, clock: Clock, every_s: float = _EVERY_S) -> None:
        self._store, self._providers, self._clock, self._every_s = store, providers, clock, every_s

    async def keep(self) -> None:
        """Look now and then, for ever: a duty. No provider tells when it offers something else."""
        while True:
            await self.look()
            await self._clock.sleep(self._every_s)

    async def look(self) -> None:
        """Look at all regions once; a provider that does not answer is asked again the next time."""
        for region in (await self._store.list(Region)).items:
            if is_withdrawn(region):
                continue
            try:
                await seed_classes(self._store, self._providers, region, now=self._clock.now())
            except RemudaError as error:
                structlog.get_logger().warning("storage classes are not known", region=region.name, error=error.code)


def _stored(region: str, offered: CloudStorageClass, provisioner: str) -> FileStorageClass:
    metadata = Metadata(
        name=class_id(region, offered.id),
        labels={NAME: _name(offered), regional.REGION: region},
        annotations={OFFERED_AS: offered.id},
    )
    spec = FileStorageClassSpec(provisioner=provisioner, protocols=offered.protocols, parallelism=offered.parallelism)
    return FileStorageClass(metadata=metadata, spec=spec)


def _name(offered: CloudStorageClass) -> str:
    """Return a class's name as a label can hold it."""
    return _NO_NAME.sub("-", offered.name)[:_LONGEST_NAME].strip("-_.") or offered.id


def _as_offered(wanted: FileStorageClass, found: FileStorageClass) -> FileStorageClass:
    """Return a class as it is offered now, with whatever else was said about it, such as whom it is for."""
    kept = {key: value for key, value in found.metadata.annotations.items() if key != WITHDRAWN}
    metadata = replace(
        found.metadata,
        labels={**found.metadata.labels, **wanted.metadata.labels},
        annotations={**kept, **wanted.metadata.annotations},
    )
    return replace(found, metadata=metadata, spec=wanted.spec)


def _withdrawn(found: FileStorageClass, now: datetime) -> FileStorageClass:
    annotations = {WITHDRAWN: now.isoformat(timespec="seconds"), **found.metadata.annotations}
    return replace(found, metadata=replace(found.metadata, annotations=annotations))
