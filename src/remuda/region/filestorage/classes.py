"""Classes of file storage, copied from the offers of providers into the store.

A class has an id of its own, since providers of several regions may use the same names. One that is no longer offered
is hidden and cannot be used for new storage, while controllers of existing storage still read it. Classes that
operators create, with the provider's id as their name, are left as they are.
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
from remuda.resources.conventions import NAME, REGION
from remuda.resources.crud import seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

PROVIDER_CLASS = f"{REMUDA_GROUP}/offered-as"
"""Annotation: the id of an offered class at the provider."""

_INTERVAL_S = 300.0
_NOT_IN_NAME = re.compile(r"[^0-9A-Za-z_.-]+")
_MAX_NAME = 63


def class_id(region: str, offered: str) -> str:
    return derived_id(region, f"filestorageclass/{offered}")


def provider_class(found: FileStorageClass) -> str:
    return found.metadata.annotations.get(PROVIDER_CLASS, found.name)


def is_offered(found: FileStorageClass) -> bool:
    """Return whether a class can be used for new storage."""
    return WITHDRAWN not in found.metadata.annotations


async def seed_classes(store: Store, providers: ProviderRegistry, region: Region, *, now: datetime) -> None:
    """Update the classes of a region to the offer of its provider, if that has file storage."""
    cloud = providers.of_region(region)
    if cloud.provider.file_storages is None:
        return
    offered = await cloud.provider.file_storages.storage_classes()
    desired = [_stored(region.name, each, cloud.provider.type) for each in offered]
    for each in desired:
        await seed(store, each, partial(_as_offered, each))
    offered_names = {each.name for each in desired}
    for found in (await store.list(FileStorageClass, labels={REGION: region.name})).items:
        if PROVIDER_CLASS in found.metadata.annotations and found.name not in offered_names and is_offered(found):
            await seed(store, found, partial(_withdrawn, now=now))


class StorageClassSync:
    """Synchronizes the classes of all regions with the offers of their providers."""

    def __init__(
        self, store: Store, providers: ProviderRegistry, *, clock: Clock, interval_s: float = _INTERVAL_S
    ) -> None:
        self._store, self._providers, self._clock, self._interval_s = store, providers, clock, interval_s

    async def run(self) -> None:
        """Synchronize at an interval, for ever: no provider sends an event when its offer changes."""
        while True:
            await self.sync()
            await self._clock.sleep(self._interval_s)

    async def sync(self) -> None:
        """Synchronize all regions once. A provider that is unavailable is tried again the next time."""
        for region in (await self._store.list(Region)).items:
            if is_withdrawn(region):
                continue
            try:
                await seed_classes(self._store, self._providers, region, now=self._clock.now())
            except RemudaError as error:
                structlog.get_logger().warning("storage classes unavailable", region=region.name, error=error.code)


def _stored(region: str, offered: CloudStorageClass, provisioner: str) -> FileStorageClass:
    metadata = Metadata(
        name=class_id(region, offered.id),
        labels={NAME: _name(offered), REGION: region},
        annotations={PROVIDER_CLASS: offered.id},
    )
    spec = FileStorageClassSpec(provisioner=provisioner, protocols=offered.protocols, parallelism=offered.parallelism)
    return FileStorageClass(metadata=metadata, spec=spec)


def _name(offered: CloudStorageClass) -> str:
    """Return the name of a class as a valid label value."""
    return _NOT_IN_NAME.sub("-", offered.name)[:_MAX_NAME].strip("-_.") or offered.id


def _as_offered(desired: FileStorageClass, found: FileStorageClass) -> FileStorageClass:
    """Return a class with the offered fields, and its other labels and annotations, such as its organization."""
    kept = {key: value for key, value in found.metadata.annotations.items() if key != WITHDRAWN}
    metadata = replace(
        found.metadata,
        labels={**found.metadata.labels, **desired.metadata.labels},
        annotations={**kept, **desired.metadata.annotations},
    )
    return replace(found, metadata=metadata, spec=desired.spec)


def _withdrawn(found: FileStorageClass, now: datetime) -> FileStorageClass:
    annotations = {WITHDRAWN: now.isoformat(timespec="seconds"), **found.metadata.annotations}
    return replace(found, metadata=replace(found.metadata, annotations=annotations))
