"""API of region as other services call it, in this process or over HTTP."""

from collections.abc import AsyncGenerator
from typing import Protocol

from remuda.access.principal import Context
from remuda.clients.watch import WatchMessage
from remuda.region.authorities.schema import AuthorityRead
from remuda.region.images.schema import ImageQuery, ServerSnapshotCreate
from remuda.region.networks.schema import NetworkRead
from remuda.region.securitygroups.schema import SecurityGroupRead
from remuda.region.servers.schema import (
    ReplaceWrite,
    ServerConsoleOutputRead,
    ServerConsoleSessionRead,
    ServerCreate,
    ServerRead,
    ServerSshKeyRead,
    ServerUpdate,
)
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import FlavorRead, ImageRead, RegionRead


class RegionApi(Protocol):
    """Routes of region, by their names. A method that returns None ignores the response."""

    async def list_regions(self, context: Context) -> list[RegionRead]: ...

    async def get_region(self, context: Context, region: str) -> RegionRead: ...

    async def list_flavors(self, context: Context, region: str, *, fresh: bool = False) -> list[FlavorRead]: ...

    async def list_images(self, context: Context, region: str, query: ImageQuery) -> list[ImageRead]: ...

    async def get_network(self, context: Context, network: str) -> NetworkRead: ...

    async def get_security_group(self, context: Context, group: str) -> SecurityGroupRead: ...

    async def get_ssh_certificate_authority(self, context: Context, authority: str) -> AuthorityRead: ...

    def list_servers(self, context: Context, query: NetworkedQuery) -> AsyncGenerator[ServerRead]: ...

    async def create_server(self, context: Context, body: ServerCreate) -> ServerRead: ...

    async def update_server(
        self, context: Context, server: str, body: ServerUpdate, *, revision: str | None = None
    ) -> ServerRead: ...

    async def replace_server(
        self, context: Context, server: str, body: ReplaceWrite, *, revision: str | None = None
    ) -> ServerRead: ...

    async def delete_server(self, context: Context, server: str) -> None: ...

    async def start_server(self, context: Context, server: str) -> None: ...

    async def stop_server(self, context: Context, server: str) -> None: ...

    async def soft_reboot_server(self, context: Context, server: str) -> None: ...

    async def hard_reboot_server(self, context: Context, server: str) -> None: ...

    async def snapshot_server(self, context: Context, server: str, body: ServerSnapshotCreate) -> ImageRead: ...

    async def get_server_ssh_key(self, context: Context, server: str) -> ServerSshKeyRead: ...

    async def open_server_console(self, context: Context, server: str) -> ServerConsoleSessionRead: ...

    async def get_server_console_output(
        self, context: Context, server: str, *, length: int | None = None
    ) -> ServerConsoleOutputRead: ...

    def watch_servers(self, since: str = "") -> AsyncGenerator[WatchMessage[ServerRead]]: ...

    def watch_networks(self) -> AsyncGenerator[WatchMessage[NetworkRead]]: ...
