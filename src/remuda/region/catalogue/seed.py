"""The regions that the configuration names, as they come into the store.

`seed_regions` runs at every start. It writes what is configured where the store has it otherwise; an id is derived from
the name, so a region that is configured again is the same one. A region that somebody else put there stays as it is,
unless the configuration has one of that id: then it is the configuration's from that start on.

A region that the configuration no longer names is withdrawn first: nobody sees it any more or makes anything in it,
while what is in it stays and can still be removed once its provider is set up again. It goes at a start an hour later
or more, if then nothing is left in it. (Mark, then look: whoever saw it before it was withdrawn has long ended then.)

Each region is one write of its own, and whatever breaks off in between is done by the next start.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import structlog
from msgspec.structs import replace

from remuda.kernel.errors import Conflict, NotFound
from remuda.kernel.ids import derived_id
from remuda.region.kinds.common import REMUDA_GROUP
from remuda.region.kinds.regions import Region
from remuda.region.settings import ConfiguredRegion
from remuda.resources import conventions as regional
from remuda.resources.conventions import DESCRIPTION, NAME
from remuda.resources.crud import find, retry_on_conflict, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

CONFIGURED = f"{REMUDA_GROUP}/configured"
"""Annotation: the configuration has made it, and the configuration withdraws it."""
WITHDRAWN = f"{REMUDA_GROUP}/withdrawn"
"""Annotation: since when it is no longer on offer."""

_NAMESPACE = "b58a53e7-5a29-5b6b-a4f3-0d5c6a1f5f0c"
_LONG = timedelta(hours=1)


def region_id(name: str) -> str:
    """Return the id of a configured region."""
    return derived_id(_NAMESPACE, name)


def is_withdrawn(region: Region) -> bool:
    """Tell whether a region is no longer on offer."""
    return WITHDRAWN in region.metadata.annotations


async def seed_regions(store: Store, wanted: Iterable[ConfiguredRegion], *, now: datetime) -> None:
    """Make the regions in the store what the configuration says."""
    regions = [_stored(each) for each in wanted]
    for region in regions:
        await seed(store, region, partial(_as_configured, region))
    named = {region.name for region in regions}
    for found in (await store.list(Region)).items:
        if CONFIGURED in found.metadata.annotations and found.name not in named:
            await _let_go(store, found, now)


def _stored(wanted: ConfiguredRegion) -> Region:
    annotations = {CONFIGURED: "yes"} | ({DESCRIPTION: wanted.description} if wanted.description else {})
    metadata = Metadata(name=region_id(wanted.name), labels={NAME: wanted.name}, annotations=annotations)
    return Region(metadata=metadata, spec=wanted.spec)


def _as_configured(wanted: Region, found: Region) -> Region:
    """Return a region as it is configured now, with whatever else was said about it."""
    kept = {key: value for key, value in found.metadata.annotations.items() if key not in {WITHDRAWN, DESCRIPTION}}
    metadata = replace(
        found.metadata,
        labels={**found.metadata.labels, **wanted.metadata.labels},
        annotations={**kept, **wanted.metadata.annotations},
    )
    return replace(found, metadata=metadata, spec=wanted.spec)


async def _let_go(store: Store, region: Region, now: datetime) -> None:
    """Withdraw a region; remove one that was withdrawn long ago and has nothing left in it."""
    logger = structlog.get_logger()
    since = region.metadata.annotations.get(WITHDRAWN)
    if since is None:
        logger.warning("a region is no longer configured and is withdrawn", region=region.name)
        await retry_on_conflict(lambda: _withdraw(store, region.name, now))
    elif now - datetime.fromisoformat(since) < _LONG:
        return
    elif await _is_empty(store, region.name):
        logger.info("a region that was withdrawn is empty and goes", region=region.name)
        with suppress(NotFound, Conflict):  # another process was faster, or configures it again
            await store.delete(Region, region.name, uid=region.uid, version=region.version)
    else:
        logger.warning(
            "a withdrawn region still has something in it: configure it until that is gone", region=region.name
        )


async def _withdraw(store: Store, name: str, now: datetime) -> None:
    found = await find(store, Region, name)
    if found is not None:
        annotations = {WITHDRAWN: now.isoformat(timespec="seconds"), **found.metadata.annotations}
        await store.update(replace(found, metadata=replace(found.metadata, annotations=annotations)))


async def _is_empty(store: Store, region: str) -> bool:
    """Tell whether no object says that it is in a region."""
    for kind in store.registry.kinds:
        if (await store.list_names(kind.type, labels={regional.REGION: region}, limit=1)).items:
            return False
    return True
