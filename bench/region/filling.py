"""Many servers that run, written with bare SQL: copies of some that were made as they should be, here and at the cloud.

To make 100,000 in earnest takes minutes. A copy has an id, a uid, an address and names of its own; whoever looks at it
finds nothing to do.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import apsw
import msgspec

from bench.kinds import SEALER, name_of
from bench.region.catalogue import CLOUD
from remuda.app import registry
from remuda.providers.contract.names import Handle, port_name, server_name
from remuda.providers.contract.servers import PortSpec, ServerSpec
from remuda.providers.simulated.shelf import encode
from remuda.region.kinds.addresses import Address, address_name
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.region.networks.plan import mac_of
from remuda.region.networks.rules import plan_of
from remuda.resources.labels import NAME
from remuda.store.codec import codecs
from remuda.store.objects import Resource
from remuda.store.readside.tables import ADDED, Tables
from remuda.store.readside.terms import Names, terms_of
from remuda.store.sqlite.file import open_file
from remuda.store.sqlite.indexing import admit_kinds

__all__ = ["Model", "fill"]

_REVISION = (
    "INSERT INTO revisions (version, kind, name, change, time, document, before) VALUES (?, ?, ?, ?, ?, ?, NULL)"
)
_OBJECT = "INSERT INTO objects (kind, name, version) VALUES (?, ?, ?)"
_ENTRY = "INSERT INTO entries (index_id, value, name) VALUES (?, ?, ?)"
_SERVER = (
    "INSERT INTO servers (tenancy, name, version, id, state, created, launched, flavor, image, port, host, boot_s, "
    "boots, document) SELECT tenancy, ?, version || ?, ?, state, created, launched, flavor, image, ?, host, boot_s, "
    "boots, ? FROM servers WHERE tenancy = ? AND name = ?"
)

replace = msgspec.structs.replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A server as it was made, which others are copies of."""

    server: Server
    address: Address
    network: Network
    at_cloud: Handle


def fill(directory: Path, models: Sequence[Model], count: int) -> None:
    """Write so many copies, of the models in turn."""
    with _Ours(directory / "remuda.db") as ours, _Cloud(directory / f"{CLOUD}.db") as cloud:
        free = [_free(model) for model in models]
        for number in range(count):
            which = number % len(models)
            copy = _copy(models[which], number, next(free[which]))
            ours.add(copy.server)
            ours.add(copy.address)
            cloud.add(models[which], copy, number)


def _free(model: Model) -> Iterator[IPv4Address]:
    pool = plan_of(model.network).dhcp_pool
    every = map(IPv4Address, range(int(pool.first), int(pool.last) + 1))
    return (ip for ip in every if str(ip) != model.address.spec.ip)


def _copy(model: Model, number: int, ip: IPv4Address) -> Model:
    name, uid, mac = name_of(number), str(uuid.UUID(int=number)), mac_of(model.network.name, ip)
    server, address = model.server, model.address
    labels = {**server.metadata.labels, NAME: f"copy-{number}"}
    status = replace(server.status, private_ip=str(ip), mac_address=mac, provider_id=name_of(number))
    spec = replace(address.spec, ip=str(ip), mac=mac, holder=name, holder_uid=uid)
    in_name = replace(address.metadata, name=address_name(model.network.name, ip), uid=f"{uid[:-1]}a")
    return Model(
        server=replace(server, metadata=replace(server.metadata, name=name, uid=uid, labels=labels), status=status),
        address=replace(address, metadata=in_name, spec=spec),
        network=model.network,
        at_cloud=Handle(model.at_cloud.tenancy, server_name(name, uid, 0)),
    )


class _File:
    """A file that is written in one go."""

    connection: apsw.Connection

    def __enter__(self) -> Any:
        self.connection.pragma("synchronous", "off")
        self.connection.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.execute("COMMIT")
        self.close()

    def close(self) -> None:
        """Let go of it."""
        self.connection.close()


class _Ours(_File):
    """The store."""

    def __init__(self, path: Path) -> None:
        self._file, known = open_file(path), registry()
        self.connection = self._file.writer
        self._names, self._codecs = Names(self.connection, known), codecs(known, SEALER)
        self._known = known
        admit_kinds(Tables(self.connection), self._names, self._codecs)
        self._version, _ = Tables(self.connection).horizon()

    def add(self, resource: Resource) -> None:
        """Write an object as the store would have."""
        self._version += 1
        kind = self._known.of(type(resource))
        number, name, born = self._names.kind(kind), resource.name, resource.metadata.creation_timestamp
        stamped = replace(resource, metadata=replace(resource.metadata, resource_version=str(self._version)))
        document = self._codecs[type(resource)].encode(stamped)
        assert born is not None
        self.connection.execute(_REVISION, (self._version, number, name, ADDED, born.timestamp(), document))
        self.connection.execute(_OBJECT, (number, name, self._version))
        terms = self._names.indexed(number, sorted(terms_of(kind, resource)))
        self.connection.executemany(_ENTRY, [(index, value, name) for index, value in terms])

    def close(self) -> None:
        """Say how far the store has come, and let go of it."""
        self.connection.execute("UPDATE horizon SET version = ?", (self._version,))
        self._file.close()


class _Cloud(_File):
    """The cloud's file."""

    def __init__(self, path: Path) -> None:
        self.connection = apsw.Connection(str(path))

    def add(self, model: Model, copy: Model, number: int) -> None:
        """Write a server with its port."""
        tenancy, name, uid = copy.at_cloud.tenancy, copy.server.name, copy.server.uid
        port = port_name(name, uid)
        server = self._document("servers", model.at_cloud, ServerSpec)
        wanted = self._document("ports", Handle(tenancy, server.port), PortSpec)
        labels = {**server.labels, "region:server_id": name}
        server = replaced(
            server, handle=copy.at_cloud, hostname=copy.server.metadata.labels[NAME], port=port, labels=labels
        )
        wanted = replaced(wanted, handle=Handle(tenancy, port), address=copy.address.spec.ip, mac=copy.address.spec.mac)
        values = (copy.at_cloud.name, str(number), copy.server.status.provider_id, port, encode(server))
        self.connection.execute(_SERVER, (*values, tenancy, model.at_cloud.name))
        self.connection.execute("INSERT INTO ports VALUES (?, ?, ?)", (tenancy, port, encode(wanted)))
        address = (tenancy, wanted.network, wanted.address, port)
        self.connection.execute("INSERT INTO addresses VALUES (?, ?, ?, ?)", address)

    def _document(self, table: str, handle: Handle, kind: Any) -> Any:
        query = f"SELECT document FROM {table} WHERE tenancy = ? AND name = ?"
        row: Any
        (row,) = self.connection.execute(query, (handle.tenancy, handle.name)).fetchall()
        return msgspec.msgpack.decode(row[0], type=kind)
