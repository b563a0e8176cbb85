"""Many servers that run, written with bare SQL: copies of some that were made as they should be, here and at the cloud.

To make 100,000 in earnest takes minutes. A copy has an id, a uid, an operation, an address and names of its own;
whoever looks at it finds nothing to do.
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
from msgspec.structs import replace

from bench.kinds import name_of
from bench.region.environment import cloud_file
from bench.region.files import BareFile, BareStore
from remuda.datadir import DataDirectory
from remuda.providers.contract.common import Handle, port_name, server_name
from remuda.providers.contract.servers import CloudPortSpec, CloudServerSpec
from remuda.providers.simulated.gateway import encode
from remuda.region.kinds.networks import Address, Network, address_name
from remuda.region.kinds.servers import Server
from remuda.region.networks.address_plan import mac_of
from remuda.region.networks.rules import plan_of
from remuda.region.servers.rules import server_id
from remuda.resources.conventions import NAME

__all__ = ["BareCloud", "Model", "copies", "fill"]

_SERVER = (
    "INSERT INTO servers (tenancy, name, version, id, state, created, launched, flavor, image, port, host, boot_s, "
    "boots, document) SELECT tenancy, ?, version || ?, ?, state, created, launched, flavor, image, ?, host, boot_s, "
    "boots, ? FROM servers WHERE tenancy = ? AND name = ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A server as it was made, which others are copies of."""

    server: Server
    address: Address
    network: Network
    at_cloud: Handle


def fill(directory: Path, models: Sequence[Model], count: int) -> None:
    """Write so many copies, of the models in turn."""
    with BareStore(DataDirectory(directory).store) as ours, BareCloud(directory) as cloud:
        for number, (model, copy) in enumerate(copies(models, count)):
            ours.add(copy.server)
            ours.add(copy.address)
            cloud.add(model, copy, number)


def copies(models: Sequence[Model], count: int) -> Iterator[tuple[Model, Model]]:
    """Yield so many copies, of the models in turn, each with its model."""
    free = [_free(model) for model in models]
    for number in range(count):
        which = number % len(models)
        yield models[which], _copy(models[which], number, next(free[which]))


def _free(model: Model) -> Iterator[IPv4Address]:
    pool = plan_of(model.network).dhcp_pool
    every = map(IPv4Address, range(int(pool.first), int(pool.last) + 1))
    return (ip for ip in every if str(ip) != model.address.spec.ip)


def _copy(model: Model, number: int, ip: IPv4Address) -> Model:
    label, uid, mac = f"copy-{number}", str(uuid.UUID(int=number)), mac_of(model.network.name, ip)
    server, address, name = model.server, model.address, server_id(model.network.name, label)
    about = replace(server.metadata, name=name, uid=uid, labels={**server.metadata.labels, NAME: label})
    status = replace(server.status, private_ip=str(ip), mac_address=mac, provider_id=name_of(number))
    wanted = replace(server.spec, operation=name_of(number))
    spec = replace(address.spec, ip=str(ip), mac=mac, holder=name, holder_uid=uid)
    in_name = replace(address.metadata, name=address_name(model.network.name, ip), uid=f"{uid[:-1]}a")
    return Model(
        server=replace(server, metadata=about, spec=wanted, status=status),
        address=replace(address, metadata=in_name, spec=spec),
        network=model.network,
        at_cloud=Handle(model.at_cloud.tenancy, server_name(name, uid, 0)),
    )


class BareCloud(BareFile):
    """The cloud's file in the directory of an environment."""

    def __init__(self, directory: Path) -> None:
        self.connection = apsw.Connection(str(cloud_file(directory)))
        self._models: dict[tuple[str, Handle], Any] = {}

    def add(self, model: Model, copy: Model, number: int) -> None:
        """Write a server with its port."""
        tenancy, name, uid = copy.at_cloud.tenancy, copy.server.name, copy.server.uid
        port = port_name(name, uid)
        server = self._document("servers", model.at_cloud, CloudServerSpec)
        wanted = self._document("ports", Handle(tenancy, server.port), CloudPortSpec)
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
        if (table, handle) not in self._models:
            query = f"SELECT document FROM {table} WHERE tenancy = ? AND name = ?"
            row: Any
            (row,) = self.connection.execute(query, (handle.tenancy, handle.name)).fetchall()
            self._models[table, handle] = msgspec.msgpack.decode(row[0], type=kind)
        return self._models[table, handle]
