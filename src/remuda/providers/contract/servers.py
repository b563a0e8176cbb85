"""Servers, the ports they stand behind, and what one sees and keeps of them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from remuda.providers.contract.catalogue import Image, NewImage
from remuda.providers.contract.common import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class PortSpec:
    """What a port is to be. Its address is ours to choose, and a provider gives it to nobody else."""

    handle: Handle
    network: str
    """The network's name, in the same tenancy."""
    address: str
    mac: str
    groups: tuple[str, ...] = ()
    """The names of its security groups."""
    sources: tuple[str, ...] = ()
    """Prefixes that it may also send from."""
    is_public: bool = False
    """It has a public address too, from the provider's pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port as the provider has it."""

    spec: PortSpec
    public_address: str = ""
    server: str = ""
    """The name of the server that stands behind it."""


class Ports(Protocol):
    """Keeps ports."""

    async def converge_port(self, wanted: PortSpec) -> Port:
        """Make a port, or bring its groups, sources and public address up to date.

        Raise AlreadyExists if another port of the network has the address, NoCapacity if the pool is empty, NotFound
        if there is no such network or group, and Refused if it would move to another network, address or MAC.
        """
        ...

    async def find_port(self, handle: Handle) -> Port | None:
        """Look for a port."""
        ...

    async def remove_port(self, handle: Handle) -> None:
        """Remove a port with its public address, or raise InUse while a server stands behind it."""
        ...

    def ports(self) -> AsyncIterator[Sequence[Port]]:
        """Yield all ports of ours, in parts."""
        ...


ServerState = Literal[
    "queued", "building", "running", "stopping", "stopped", "rebuilding", "suspended", "failed", "removing", "unknown"
]
"""How a server is. A failed one never ran, or a rebuild broke it; it says why in `fault`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """What a server is to be."""

    handle: Handle
    hostname: str
    flavor: str
    image: str
    port: str
    """The name of the port that it stands behind, in the same tenancy: nobody else may."""
    user_data: bytes = b""
    has_tenancy_key: bool = False
    """The tenancy's public key is let in."""
    host: str = ""
    """The piece of infrastructure that it is pinned to."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Whose it is, for whoever looks at the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server as the provider has it."""

    handle: Handle
    id: str
    state: ServerState
    flavor: str
    image: str
    """The image it was made of, or is being rebuilt to."""
    port: str
    version: str
    """Another one whenever anything about the server is."""
    created: datetime
    launched: datetime | None = None
    """When it ran first."""
    host: str = ""
    """Where it is now."""
    fault: str = ""
    """Why it failed."""


class Sighting(msgspec.Struct, frozen=True, gc=False):
    """That a server is there, and whether anything about it is new; light, like its handle."""

    handle: Handle
    version: str


class Servers(Protocol):
    """Keeps servers."""

    async def create_server(self, wanted: ServerSpec) -> Server:
        """Make a server, or raise AlreadyExists, before all else, or NoCapacity; InUse if another is behind its port.

        Raise NotFound if there is no such port, flavor or image, WrongState if the image is not ready, and Refused if
        flavor, image and host do not fit together.
        """
        ...

    async def find_server(self, handle: Handle) -> Server | None:
        """Look for a server."""
        ...

    async def remove_server(self, handle: Handle) -> None:
        """Remove a server; its port stays. It may be there for a while yet, as `removing`, and behind its port."""
        ...

    async def start_server(self, handle: Handle) -> None:
        """Start a stopped server, or raise WrongState; NotFound if it is not there. So with the other verbs."""
        ...

    async def stop_server(self, handle: Handle) -> None:
        """Stop a running server."""
        ...

    async def reboot_server(self, handle: Handle, *, hard: bool) -> None:
        """Reboot a running server: asking its system, or cutting the power."""
        ...

    async def rebuild_server(self, handle: Handle, image: str, user_data: bytes | None = None) -> None:
        """Put another image in the place of a server's root disk: its port, addresses and id stay.

        It starts for the first time again, with this user data, or with what it had if that is None. A running server
        runs again afterwards, and a stopped one is stopped.
        """
        ...

    def sightings(self) -> AsyncIterator[Sequence[Sighting]]:
        """Yield all servers of ours, in parts."""
        ...


class Consoles(Protocol):
    """Lets one see servers."""

    async def open_console(self, handle: Handle) -> str:
        """Return an address at which a browser sees the screen, for a while; WrongState if there is none to see."""
        ...

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        """Return what a server wrote to its console, the last lines of it."""
        ...


class Snapshots(Protocol):
    """Makes images of servers."""

    async def snapshot_server(self, handle: Handle, wanted: NewImage) -> Image:
        """Begin to make an image of a server's disk, or raise AlreadyExists."""
        ...
