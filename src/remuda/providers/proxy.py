"""Ports, servers, their consoles and snapshots, through a provider's calls."""

from collections.abc import AsyncIterator, Sequence

from remuda.providers.called.catalogue import image_key
from remuda.providers.called.listing import listed
from remuda.providers.calls import Calls
from remuda.providers.contract.catalogue import Image, NewImage
from remuda.providers.contract.common import Handle
from remuda.providers.contract.servers import (
    Consoles,
    Port,
    Ports,
    PortSpec,
    Server,
    Servers,
    ServerSpec,
    Sighting,
    Snapshots,
)

PORT_VERBS = ("converge_port", "find_port", "remove_port", "ports")
"""What is asked about ports."""
SERVER_VERBS = (
    "create_server",
    "find_server",
    "remove_server",
    "start_server",
    "stop_server",
    "reboot_server",
    "rebuild_server",
    "sightings",
)
"""What is asked about servers."""
CONSOLE_VERBS = ("open_console", "console_output")
"""What is asked about consoles."""
SNAPSHOT_VERBS = ("snapshot_server",)
"""What is asked about snapshots."""


class CalledPorts:
    """Ports."""

    def __init__(self, ports: Ports, calls: Calls) -> None:
        self._ports, self._calls = ports, calls

    async def converge_port(self, wanted: PortSpec) -> Port:
        """Make a port, or bring it up to date."""
        return await self._calls.call(wanted.handle.name, "converge_port", lambda: self._ports.converge_port(wanted))

    async def find_port(self, handle: Handle) -> Port | None:
        return await self._calls.call(handle.name, "find_port", lambda: self._ports.find_port(handle), safe=True)

    async def remove_port(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_port", lambda: self._ports.remove_port(handle))

    def ports(self) -> AsyncIterator[Sequence[Port]]:
        return listed(self._calls, "ports", self._ports.ports)


class CalledServers:
    """Servers."""

    def __init__(self, servers: Servers, calls: Calls) -> None:
        self._servers, self._calls = servers, calls

    async def create_server(self, wanted: ServerSpec) -> Server:
        return await self._calls.call(wanted.handle.name, "create_server", lambda: self._servers.create_server(wanted))

    async def find_server(self, handle: Handle) -> Server | None:
        return await self._calls.call(handle.name, "find_server", lambda: self._servers.find_server(handle), safe=True)

    async def remove_server(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_server", lambda: self._servers.remove_server(handle))

    async def start_server(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "start_server", lambda: self._servers.start_server(handle))

    async def stop_server(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "stop_server", lambda: self._servers.stop_server(handle))

    async def reboot_server(self, handle: Handle, *, hard: bool) -> None:
        await self._calls.call(handle.name, "reboot_server", lambda: self._servers.reboot_server(handle, hard=hard))

    async def rebuild_server(self, handle: Handle, image: str, user_data: bytes | None = None) -> None:
        rebuild = self._servers.rebuild_server
        await self._calls.call(handle.name, "rebuild_server", lambda: rebuild(handle, image, user_data))

    def sightings(self) -> AsyncIterator[Sequence[Sighting]]:
        return listed(self._calls, "sightings", self._servers.sightings)


class CalledConsoles:
    """Consoles. To open one changes nothing about its server."""

    def __init__(self, consoles: Consoles, calls: Calls) -> None:
        self._consoles, self._calls = consoles, calls

    async def open_console(self, handle: Handle) -> str:
        """Return where a browser sees the screen."""
        return await self._calls.call(
            handle.name, "open_console", lambda: self._consoles.open_console(handle), safe=True
        )

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        """Return what a server wrote to its console."""
        return await self._calls.call(
            handle.name, "console_output", lambda: self._consoles.console_output(handle, lines=lines), safe=True
        )


class CalledSnapshots:
    """Snapshots. Each is about the image that it makes, which alone can be made twice."""

    def __init__(self, snapshots: Snapshots, calls: Calls) -> None:
        self._snapshots, self._calls = snapshots, calls

    async def snapshot_server(self, handle: Handle, wanted: NewImage) -> Image:
        """Begin to make an image of a server."""
        return await self._calls.call(
            image_key(wanted.id), "snapshot_server", lambda: self._snapshots.snapshot_server(handle, wanted)
        )
