"""Regions of the configuration.

`seed_regions` runs at every start and writes each region whose stored state differs. The id is derived from the name,
so a region that is configured again is the same object. Regions that were created in another way are not changed,
unless the configuration has one of the same id.

A region that is no longer configured is withdrawn first: it is invisible, and nothing can be created in it, while its
objects stay and can be deleted once its provider is configured again. It is deleted by a start at least an hour later,
when requests that saw it before have ended, if it is empty then.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import structlog
from msgspec.structs import replace

from remuda.kernel.errors import Conflict, NotFound
from remuda.kernel.ids import derived_id
from remuda.region.kinds.common import REMUDA_GROUP
from remuda.region.kinds.filestorage import FileStorageClass
from remuda.region.kinds.regions import Region
from remuda.region.settings import ConfiguredRegion
from remuda.resources.conventions import DESCRIPTION, NAME, REGION
from remuda.resources.crud import find, retry_on_conflict, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

CONFIGURED = f"{REMUDA_GROUP}/configured"
"""Annotation of a region that the configuration created, and can withdraw."""
WITHDRAWN = f"{REMUDA_GROUP}/withdrawn"
"""Annotation with the time since which a region is withdrawn."""

_NAMESPACE = "b58a53e7-5a29-5b6b-a4f3-0d5c6a1f5f0c"
_DELETION_DELAY = timedelta(hours=1)


def region_id(name: str) -> str:
    return derived_id(_NAMESPACE, name)


def is_withdrawn(region: Region) -> bool:
    return WITHDRAWN in region.metadata.annotations


async def seed_regions(store: Store, configured: Iterable[ConfiguredRegion], *, now: datetime) -> None:
    """Write the configured regions to the store, and withdraw or delete those that are no longer configured."""
    regions = [_new_region(each) for each in configured]
    for region in regions:
        await seed(store, region, partial(_updated_region, region))
    names = {region.name for region in regions}
    for found in (await store.list(Region)).items:
        if CONFIGURED in found.metadata.annotations and found.name not in names:
            await _retire(store, found, now)


def _new_region(configured: ConfiguredRegion) -> Region:
    annotations = {CONFIGURED: "yes"} | ({DESCRIPTION: configured.description} if configured.description else {})
    metadata = Metadata(name=region_id(configured.name), labels={NAME: configured.name}, annotations=annotations)
    return Region(metadata=metadata, spec=configured.spec)


def _updated_region(configured: Region, found: Region) -> Region:
    """Return a stored region as it is configured now, with its other labels and annotations."""
    kept = {key: value for key, value in found.metadata.annotations.items() if key not in {WITHDRAWN, DESCRIPTION}}
    metadata = replace(
        found.metadata,
        labels={**found.metadata.labels, **configured.metadata.labels},
        annotations={**kept, **configured.metadata.annotations},
    )
    return replace(found, metadata=metadata, spec=configured.spec)


async def _retire(store: Store, region: Region, now: datetime) -> None:
    """Withdraw a region, or delete one that was withdrawn long ago and is empty."""
    logger = structlog.get_logger()
    since = region.metadata.annotations.get(WITHDRAWN)
    if since is None:
        logger.warning("region is no longer configured and is withdrawn", region=region.name)
        await retry_on_conflict(lambda: _withdraw(store, region.name, now))
    elif now - datetime.fromisoformat(since) < _DELETION_DELAY:
        return
    elif await is_empty(store, region.name):
        logger.info("withdrawn region is empty and is deleted", region=region.name)
        with suppress(NotFound, Conflict):  # another process was first, or has it configured
            await store.delete(Region, region.name, uid=region.uid, version=region.version)
    else:
        logger.warning("withdrawn region is not empty: configure it until its objects are deleted", region=region.name)


async def _withdraw(store: Store, name: str, now: datetime) -> None:
    found = await find(store, Region, name)
    if found is not None:
        annotations = {WITHDRAWN: now.isoformat(timespec="seconds"), **found.metadata.annotations}
        await store.update(replace(found, metadata=replace(found.metadata, annotations=annotations)))


async def is_empty(store: Store, region: str) -> bool:
    """Return whether no object is in a region."""
    return not await contents(store, region)


async def contents(store: Store, region: str) -> Sequence[str]:
    """Return the kinds of the objects that are in a region. Classes of file storage are only its offer."""
    found = []
    for kind in store.registry.kinds:
        if kind.type is not FileStorageClass:
            page = await store.list_names(kind.type, labels={REGION: region}, limit=1)
            found += [kind.plural] if page.items else []
    return found
