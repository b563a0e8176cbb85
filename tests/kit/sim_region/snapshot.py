"""Everything that region stores and everything that the clouds have, at one moment."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remuda.identity.kinds.quotas import Allocation, Quota, QuotaMetadata
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.operations.kinds import Operation
from remuda.providers.contract.common import id_in, uid_in
from remuda.providers.simulated.provider import SimulatedCloud
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.images import ImageImport
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Address, Identity, Network, OpenstackIdentity
from remuda.region.kinds.orphans import Orphan
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server, cloud_uid_of
from remuda.store.contract import Store
from remuda.store.objects import Resource

TYPES: Mapping[str, type[Resource]] = {
    "identity": Identity,
    "record": OpenstackIdentity,
    "network": Network,
    "group": SecurityGroup,
    "balancer": LoadBalancer,
    "server": Server,
    "authority": SSHCertificateAuthority,
    "storage": FileStorage,
    "address": Address,
    "orphan": Orphan,
    "import": ImageImport,
    "organization": Organization,
    "project": Project,
    "row": Allocation,
    "heads": Quota,
    "catalogue": QuotaMetadata,
    "operations": Operation,
}
"""What is looked at, as the book calls it."""
CONTROLLED = ("identity", "network", "group", "balancer", "server", "authority", "storage")
"""Kinds of region's own that have a controller."""
AT_CLOUD: Mapping[str, str] = {
    "tenancies": "identity",
    "networks": "network",
    "groups": "group",
    "balancers": "balancer",
    "ports": "server",
    "servers": "server",
    "storages": "storage",
}
"""Whose the rows of each of a cloud's tables are."""


@dataclass(frozen=True, slots=True)
class Row:
    """Something at a cloud."""

    table: str
    name: str
    state: str = ""
    was_up: bool = True
    made_of: tuple[str, str] = ("", "")
    """The flavor and the image of a server."""
    address: str = ""
    """The one it has on its network, of a port or a balancer."""
    network: str = ""
    """The id of that network."""

    @property
    def owner(self) -> tuple[str, str, str]:
        """Whose it is: kind, id and uid."""
        return AT_CLOUD[self.table], id_in(self.name), uid_in(self.name)


@dataclass(frozen=True, slots=True)
class RegionSnapshot:
    """All objects by name, and all rows of all clouds by table and name."""

    objects: Mapping[str, Mapping[str, Any]]
    rows: Mapping[tuple[str, str], Row]
    images: Mapping[str, str]
    """The state of each image that a cloud was given, by id."""

    def of(self, kind: str) -> Mapping[str, Any]:
        """Return the objects that the book calls so."""
        return self.objects[kind]

    def owner_of(self, row: Row) -> Any:
        """Return whose a row is, in that very incarnation, or None."""
        kind, name, uid = row.owner
        found = self.objects[kind].get(name)
        return found if found is not None and cloud_uid_of(found) == uid else None

    def at_cloud(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table of all clouds."""
        return (row for (where, _), row in self.rows.items() if where == table)

    @property
    def controlled(self) -> Iterator[tuple[str, Any]]:
        """All objects of region that have a controller, with their kinds."""
        return ((kind, each) for kind in CONTROLLED for each in self.objects[kind].values())

    # What the invariants of identity read.

    @property
    def heads(self) -> Mapping[str, Quota]:
        """The heads of all ledgers."""
        return self.objects["heads"]

    @property
    def row(self) -> Mapping[str, Allocation]:
        """All allocations."""
        return self.objects["row"]

    @property
    def catalogue(self) -> Mapping[str, QuotaMetadata]:
        """The kinds of quota."""
        return self.objects["catalogue"]

    @property
    def operations(self) -> Mapping[str, Operation]:
        """All operations."""
        return self.objects["operations"]


_PAGE = 50


class RegionSnapshots:
    """Looks at a store and at clouds, and reads again only what may have changed."""

    def __init__(self, store: Store, clouds: Iterable[SimulatedCloud]) -> None:
        self._store = store
        self._read: dict[type[Resource], tuple[int, Mapping[str, Any]]] = {}
        self._clouds = [CloudSnapshots(cloud) for cloud in clouds]
        self._storages = [cloud.storage for cloud in self._clouds]

    @property
    def version(self) -> object:
        """Another one as soon as anything at a cloud is."""
        return tuple([storage._last_announced for storage in self._storages])

    async def take(self) -> RegionSnapshot:
        """Return everything."""
        objects = {name: await self._all(kind) for name, kind in TYPES.items()}
        rows = {key: row for cloud in self._clouds for key, row in cloud.rows().items()}
        images = {id_: state for cloud in self._clouds for id_, state in cloud.images()}
        return RegionSnapshot(objects, rows, images)

    async def _all(self, kind: type[Resource]) -> Mapping[str, Any]:
        change_count, read = self._store.change_counter([kind]), self._read.get(kind)
        if read is not None and read[0] == change_count:
            return read[1]
        found: dict[str, Any] = {}
        after: str | None = ""
        while after is not None:  # in pages, since only a long read waits for others
            page = await self._store.list(kind, limit=_PAGE, after=after or None)
            found |= {each.name: each for each in page.items}
            after = page.next
        self._read[kind] = change_count, found
        return found


class CloudSnapshots:
    """Looks at a cloud past its own API, which may be stale or fail."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        self.storage = cloud._context.storage
        self._read: tuple[int, Mapping[tuple[str, str], Row]] = (-1, {})

    @property
    def version(self) -> int:
        """How many changes there were."""
        return int(self.storage._last_announced)

    def rows(self) -> Mapping[tuple[str, str], Row]:
        """Return all rows by table and name."""
        if self._read[0] != self.version:
            self._read = self.version, {(row.table, row.name): row for row in self._all()}
        return self._read[1]

    def images(self) -> list[tuple[str, str]]:
        """Return all images by id, with their states."""
        return [(id_, state) for id_, state in self.storage.rows("SELECT id, state FROM images")]

    def _all(self) -> Iterator[Row]:
        select = self.storage.rows
        taken = select("SELECT holder, address, network FROM addresses")
        addresses = {holder: {"address": address, "network": id_in(network)} for holder, address, network in taken}
        for table in ("tenancies", "networks", "groups", "storages"):
            yield from (Row(table, name) for (name,) in select(f"SELECT name FROM {table}"))
        for (name,) in select("SELECT name FROM ports"):
            yield Row("ports", name, **addresses[name])
        for name, state in select("SELECT name, state FROM balancers"):
            yield Row("balancers", name, state, **addresses[name])
        for name, state, launched, *made_of in select("SELECT name, state, launched, flavor, image FROM servers"):
            yield Row("servers", name, state, was_up=launched is not None, made_of=(made_of[0], made_of[1]))
