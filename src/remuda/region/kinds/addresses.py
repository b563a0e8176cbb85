"""Addresses: who has which one of a network.

There is one object for each address that is taken, and its name says which, so that two can never have the same; it is
made before the cloud hears of the address, and the holder's controller removes it after the cloud has let go of it.

The network owns it, not the holder: what is owned goes before its owner, and the next server would get an address that
the cloud still has in use. On a network that goes there is no next server.
"""

from ipaddress import IPv4Address

from remuda.region.kinds.api_groups import OURS, VERSION
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct


def address_name(network: str, ip: IPv4Address) -> str:
    """Return the name of the object that stands for an address of a network."""
    return f"{network}.{str(ip).replace('.', '-')}"


class AddressSpec(StoredStruct, frozen=True):
    """Which address it is, and whose."""

    ip: str
    mac: str
    holder: str
    """The id of the server or load balancer that has it."""
    holder_uid: str
    """The uid that its names at the cloud carry: one that was made again has not got the addresses of the old one."""


class Address(Resource, frozen=True):
    """An address that is taken. Labels say on which network, and where that is."""

    spec: AddressSpec


ADDRESS = Kind(
    type=Address,
    group=OURS,
    version=VERSION,
    plural="addresses",
    indexes=(Index(name="holder", values=lambda address: [address.spec.holder]),),
    unsought=frozenset({ORGANIZATION, PROJECT}),
    columns={"IP": ".spec.ip", "MAC": ".spec.mac", "Holder": ".spec.holder"},
)
"""Addresses, found by the label of their network, and by who has them."""
