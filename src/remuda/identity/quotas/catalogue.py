"""The kinds of quota: those that are built in, and those that somebody has added to them.

`floatingips` is among them because compute charges it: a kind that nobody has described cannot be limited.
"""

from collections.abc import Mapping
from contextlib import suppress

from remuda.identity.kinds.quotas import QuotaMetadata, QuotaMetadataSpec
from remuda.identity.quotas.quota_state import Catalogue
from remuda.kernel.errors import AlreadyExists
from remuda.store.contract import Store
from remuda.store.objects import Metadata


def _count(display_name: str, description: str, default: int) -> QuotaMetadataSpec:
    return QuotaMetadataSpec(display_name=display_name, description=description, default=default)


def _binary(display_name: str, description: str, default: int) -> QuotaMetadataSpec:
    return QuotaMetadataSpec(display_name=display_name, description=description, default=default, format="binary")


BUILT_IN: Mapping[str, QuotaMetadataSpec] = {
    "clusters": _count("Clusters", "Clusters of any type.", 5),
    "filestorage": _binary("File storage", "Bytes of shared file storage.", 1 << 40),
    "floatingips": _count("Floating IPs", "Public addresses of instances.", 5),
    "gpus": _count("GPUs", "Physical graphics processors.", 40),
    "loadbalancers": _count("Load balancers", "Load balancers.", 5),
    "networks": _count("Networks", "Private networks.", 5),
    "publicips": _count("Public IPs", "Public addresses of load balancers.", 5),
    "servers": _count("Servers", "Virtual and physical servers.", 10),
    "volume": _binary("Block storage", "GiB of block storage.", 0),
}
"""What everybody has to begin with."""


async def seed_quota_metadata(store: Store) -> None:
    """Write the kinds that are built in, where they are missing: what an operator made of them stays."""
    for kind, spec in BUILT_IN.items():
        with suppress(AlreadyExists):
            await store.create(QuotaMetadata(metadata=Metadata(name=kind), spec=spec))


class Kinds:
    """The kinds that there are, read again only when one has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stamp: int | None = None
        self._read: Catalogue = {}

    async def all(self) -> Catalogue:
        """Return them by name."""
        stamp = self._store.stamp([QuotaMetadata])
        if stamp != self._stamp:
            found = await self._store.list(QuotaMetadata)
            self._read, self._stamp = {each.name: each.spec for each in found.items}, stamp
        return self._read
