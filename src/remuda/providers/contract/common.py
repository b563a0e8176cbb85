"""Names of our objects at a provider, and the errors with which a provider denies a request.

A name consists of the object's type, our id and the uid of the incarnation. A server's name also counts its
replacements. Its port's name does not, because a replaced server passes its port and addresses on to its successor.
"""

from typing import Literal

import msgspec

from remuda.kernel.errors import RemudaError

ProviderType = Literal["openstack", "kubernetes", "simulated"]
"""Kinds of provider."""
Architecture = Literal["x86_64", "aarch64"]
"""Instruction set of a processor."""
Virtualization = Literal["virtualized", "baremetal", "any"]
"""Kind of machine that an image runs on."""
Vendor = Literal["NVIDIA", "AMD"]
"""Manufacturer of a GPU."""
ImageState = Literal["pending", "creating", "ready", "failed"]
"""State of an image."""


class Handle(msgspec.Struct, frozen=True, order=True, gc=False):
    """Address of an object: its name and its tenancy. Not tracked by the garbage collector: lists have many."""

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
    """Return the name of a server; `replacement` counts how often the server was replaced."""
    return f"server-{server}.{uid}.{replacement}"


def id_in(name: str) -> str:
    """Return our id in one of our names, or an empty string for any other name."""
    return _part(name, 0).partition("-")[2]


def uid_in(name: str) -> str:
    """Return our uid in one of our names, or an empty string for any other name."""
    return _part(name, 1)


def _part(name: str, number: int) -> str:
    parts = name.split(".")
    return parts[number] if len(parts) in {2, 3} else ""


# ruff: noqa: N818  the names state what happened; an "Error" suffix would add nothing


class WrongState(RemudaError):
    """Raised when an object's state does not allow the call; wait for another state, or bring it about."""

    code = "wrong_state"
    status = 400

    def __init__(self, kind: str, name: str, *, state: str) -> None:
        super().__init__(f"The {kind} {name} is {state}, which does not allow this. Check its state and try again.")
        self.kind, self.name, self.state = kind, name, state


class NoCapacity(RemudaError):
    """Raised when a provider has no capacity left; choose another flavor or region, or wait."""

    code = "no_capacity"
    status = 503
    retry = True

    def __init__(self, what: str) -> None:
        super().__init__(f"There is no capacity left for {what}. Choose another, or try again later.")
        self.what = what


class InUse(RemudaError):
    """Raised when another object still needs this one; remove that first."""

    code = "in_use"
    status = 409

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} is in use. Remove what uses it first.")
        self.kind, self.name = kind, name


class Rejected(RemudaError):
    """Raised when a provider does not accept a request, now or later; send a different one."""

    code = "rejected"
    status = 422

    def __init__(self, reason: str) -> None:
        super().__init__(f"The provider rejected the request: {reason}.")
