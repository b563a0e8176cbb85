"""What our things are called at a provider.

A name says what it is, whose it is (our id) and which incarnation (our uid). A server also counts its replacements,
and its port does not: the port, with its addresses, is what a replaced server hands on.

What a provider says when it says no, beside that something is not there, or there already.
"""

import msgspec

from remuda.kernel.errors import RemudaError


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


# ruff: noqa: N818  these names are read as what happened; "Error" at the end of each would add nothing


class WrongState(RemudaError):
    """Raised when a thing is not in a state in which it can do this; wait until it is, or bring it there."""

    code = "wrong_state"
    status = 400

    def __init__(self, kind: str, name: str, *, state: str) -> None:
        super().__init__(f"The {kind} {name} is {state} and cannot do this now: look at its state, then try again.")
        self.kind, self.name, self.state = kind, name, state


class NoCapacity(RemudaError):
    """Raised when a provider has no room for it; choose another flavor or region, or wait until something goes."""

    code = "no_capacity"
    status = 503
    retry = True

    def __init__(self, what: str) -> None:
        super().__init__(f"There is no capacity left for {what}: choose another, or try again later.")
        self.what = what


class InUse(RemudaError):
    """Raised when something else still needs it; remove that first."""

    code = "in_use"
    status = 409

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} is in use: remove what uses it first.")
        self.kind, self.name = kind, name


class Refused(RemudaError):
    """Raised when a provider will not do it, now or later, as it was asked; ask for something else."""

    code = "refused"
    status = 422

    def __init__(self, why: str) -> None:
        super().__init__(f"The provider refuses: {why}.")
