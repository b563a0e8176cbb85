"""What our things are called at a provider.

A name says what it is, whose it is (our id) and which incarnation (our uid). A server also counts its replacements,
and its port does not: the port, with its addresses, is what a replaced server hands on.
"""

import msgspec


class Handle(msgspec.Struct, frozen=True, order=True, gc=False):
    """Where something is: its name, and the tenancy that has it. Listings have many: no collector looks at them."""

    tenancy: str
    name: str


def tenancy_name(identity: str, uid: str) -> str:
    """Return the name of an identity's tenancy."""
    return f"identity-{identity}.{uid}"


def network_name(network: str, uid: str) -> str:
    """Return the name of a network."""
    return f"network-{network}.{uid}"


def group_name(group: str, uid: str) -> str:
    """Return the name of a security group."""
    return f"securitygroup-{group}.{uid}"


def balancer_name(balancer: str, uid: str) -> str:
    """Return the name of a load balancer."""
    return f"loadbalancer-{balancer}.{uid}"


def storage_name(storage: str, uid: str) -> str:
    """Return the name of a file storage."""
    return f"filestorage-{storage}.{uid}"


def port_name(server: str, uid: str) -> str:
    """Return the name of a server's port, which outlives a replacement."""
    return f"port-{server}.{uid}"


def server_name(server: str, uid: str, replacement: int) -> str:
    """Return the name of a server; `replacement` counts how often it was made anew."""
    return f"server-{server}.{uid}.{replacement}"


def id_in(name: str) -> str:
    """Return our id in a name of ours, or nothing if it is none."""
    return _part(name, 0).partition("-")[2]


def uid_in(name: str) -> str:
    """Return our uid in a name of ours, or nothing if it is none."""
    return _part(name, 1)


def _part(name: str, number: int) -> str:
    parts = name.split(".")
    return parts[number] if len(parts) in {2, 3} else ""
