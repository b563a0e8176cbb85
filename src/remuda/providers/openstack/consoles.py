"""Consoles of servers at OpenStack, and images created from servers."""

from dataclasses import dataclass

import msgspec

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.catalogue import CloudImage, CloudImageSpec
from remuda.providers.contract.common import Handle, WrongState
from remuda.providers.openstack.errors import ApiError
from remuda.providers.openstack.images import OpenStackImages
from remuda.providers.openstack.servers import OpenStackServers, action_error


class _Console(msgspec.Struct, frozen=True):
    url: str


@dataclass(frozen=True, slots=True)
class OpenStackConsoles:
    """Capability of showing consoles."""

    servers: OpenStackServers

    async def open_console(self, handle: Handle, *, viewer: str = "") -> str:  # noqa: ARG002  Nova ends a console by itself
        member, record = await self.servers.existing(handle)
        if record.state != "running":
            raise WrongState("server", handle.name, state=record.state)
        body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
        try:
            console = await member.post(
                "compute", f"/servers/{record.id}/remote-consoles", body, "remote_console", _Console
            )
        except ApiError as error:
            raise action_error(error, handle, record) from None
        return str(console.url)

    async def console_output(self, handle: Handle, *, lines: int | None = None) -> str:
        member, record = await self.servers.existing(handle)
        if lines == 0:  # to Nova it would mean all
            return ""
        body = {"os-getConsoleOutput": {} if lines is None else {"length": lines}}
        try:
            written = await member.post("compute", f"/servers/{record.id}/action", body, "output", str)
        except ApiError as error:
            raise action_error(error, handle, record) from None
        return str(written) if lines is None else "".join(str(written).splitlines(keepends=True)[-lines:])


@dataclass(frozen=True, slots=True)
class OpenStackSnapshots:
    """Capability of creating images from servers."""

    servers: OpenStackServers
    images: OpenStackImages

    async def snapshot_server(self, handle: Handle, desired: CloudImageSpec) -> CloudImage:
        member, record = await self.servers.existing(handle)
        if await self.images.find_image(desired.id) is not None:
            raise AlreadyExists("image", desired.id)
        body = {"createImage": {"name": desired.name, "metadata": self.images.properties_of(desired)}}
        try:
            created = await member.post("compute", f"/servers/{record.id}/action", body, "image_id", str)
        except ApiError as error:
            raise action_error(error, handle, record) from None
        await self.images.publish(member, created)
        found = await self.images.find_image(desired.id)
        if found is None:
            raise NotFound("image", desired.id)
        return found
