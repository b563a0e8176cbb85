"""Servers at a provider, their ports, consoles and snapshots."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from remuda.providers.contract.catalogue import CloudImage, CloudImageSpec
from remuda.providers.contract.common import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPortSpec:
    """Desired port, with sorted groups and sources. We choose its address, which no other port gets."""

    handle: Handle
    network: str
    """Name of the network, in the same tenancy."""
    address: str
    mac: str
    groups: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Further prefixes that it may send from."""
    is_public: bool = False
    """Whether it also has a public address from the provider's pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPort:
    """A port as the provider reports it."""

    spec: CloudPortSpec
    public_address: str = ""
    server: str = ""


class CloudPorts(Protocol):
    """Capability of managing ports."""

    async def converge_port(self, desired: CloudPortSpec) -> CloudPort:
        """Create a port, or update its groups, sources and public address.

        Raise AlreadyExists if another port of the network has the address, NoCapacity if the pool is empty, NotFound if
        the network or a group does not exist, and Rejected if the network, address or MAC would change.
        """

    async def find_port(self, handle: Handle) -> CloudPort | None:
        """Return a port, or None."""

    async def remove_port(self, handle: Handle) -> None:
        """Remove a port with its public address, or raise InUse while a server is attached to it."""

    def ports(self) -> AsyncIterator[Sequence[CloudPort]]:
        """Yield all our ports, page by page."""


CloudServerState = Literal[
    "queued", "building", "running", "stopping", "stopped", "rebuilding", "suspended", "failed", "removing", "unknown"
]
"""State of a server. A failed one never ran, or a rebuild broke it; `fault` gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudServerSpec:
    """Desired server."""

    handle: Handle
    hostname: str
    flavor: str
    image: str
    port: str
    """Name of its port, in the same tenancy; a port has one server at most."""
    user_data: bytes = b""
    has_tenancy_key: bool = False
    host: str = ""
    rebuilds: int = 0
    """Number of requested rebuilds that its first disk stands for; see `CloudServer.rebuilds`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Owner of the server, for operators of the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudServer:
    """A server as the provider reports it."""

    handle: Handle
    id: str
    state: CloudServerState
    flavor: str
    image: str
    """Image that it was created from, or is being rebuilt to."""
    rebuilds: int = 0
    """Number that its create or its last rebuild was sent with: it tells whether a rebuild was accepted."""
    port: str
    version: str
    """Changes whenever anything about the server does."""
    created: datetime
    launched: datetime | None = None
    """Time at which it first ran."""
    host: str = ""
    fault: str = ""


class CloudServerVersion(msgspec.Struct, frozen=True, gc=False):
    """Version of a server, which changes with it. Not tracked by the garbage collector, like its handle."""

    handle: Handle
    version: str


class CloudServers(Protocol):
    """Capability of managing servers."""

    async def create_server(self, desired: CloudServerSpec) -> CloudServer:
        """Create a server; raise AlreadyExists if one with the handle exists, before any other check.

        The check and the create are one atomic step, so concurrent calls create one server. Raise NoCapacity if there
        is none, InUse if another server has the port, NotFound if the port, flavor or image does not exist, WrongState
        if the image is not ready, and Rejected if flavor, image and host do not fit together.
        """

    async def find_server(self, handle: Handle) -> CloudServer | None:
        """Return a server, or None."""

    async def remove_server(self, handle: Handle) -> None:
        """Remove a server and keep its port. The server may remain for a while as `removing`, attached to its port."""

    async def start_server(self, handle: Handle) -> None:
        """Start a stopped server, or raise WrongState, or NotFound. The other actions raise the same."""

    async def stop_server(self, handle: Handle) -> None:
        """Stop a running server."""

    async def reboot_server(self, handle: Handle, *, hard: bool) -> None:
        """Reboot a running server, through its operating system or by a power cycle."""

    async def rebuild_server(
        self, handle: Handle, image: str, user_data: bytes | None = None, rebuilds: int | None = None
    ) -> None:
        """Replace a server's root disk by that of an image, the same one or another: port, addresses and id stay.

        The next boot is a first boot, with this user data and this number of rebuilds, or with the previous ones if
        they are None; the number is stored in one write with the rebuild. A running server runs again afterwards, a
        stopped one is stopped, and one that failed after it ran is running.
        """

    def server_versions(self) -> AsyncIterator[Sequence[CloudServerVersion]]:
        """Yield the versions of all our servers, page by page."""


class CloudConsoles(Protocol):
    """Capability of showing consoles."""

    async def open_console(self, handle: Handle, *, viewer: str = "") -> str:
        """Return a temporary URL at which a browser shows the screen; WrongState if there is none.

        `viewer` says for whom it is opened. A cloud whose screens this process shows keeps it with the session, which
        ends when the viewer may no longer open it; others ignore it.
        """

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        """Return the last lines that a server wrote to its console."""


class CloudSnapshots(Protocol):
    """Capability of creating images from servers."""

    async def snapshot_server(self, handle: Handle, desired: CloudImageSpec) -> CloudImage:
        """Start to create an image from a server's disk, or raise AlreadyExists."""
