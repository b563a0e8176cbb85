"""Servers at OpenStack, behind our ports.

Nova takes a name twice, and its create has no token that makes it idempotent: the port, which has one server at most,
decides between two creates. The loser ends in ERROR without the port, and is removed when it is found.
"""

import base64
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from re import escape, sub

import msgspec

from remuda.kernel.errors import AlreadyExists, Inconsistent, NotFound, Unavailable
from remuda.providers.contract.common import Handle, InUse, NoCapacity, Rejected, WrongState
from remuda.providers.contract.servers import CloudServer, CloudServerSpec, CloudServerState, CloudServerVersion
from remuda.providers.openstack.catalogue import OpenStackFlavors
from remuda.providers.openstack.client import CloudSession
from remuda.providers.openstack.errors import ApiError
from remuda.providers.openstack.hosts import HostCheck
from remuda.providers.openstack.images import OpenStackImages
from remuda.providers.openstack.ports import NeutronPort, OpenStackPorts
from remuda.providers.openstack.tenancies import TenancyAccess, project_name

PORT_KEY = "remuda:port"
"""Metadata key with the name of a server's port."""
REBUILDS_KEY = "remuda:rebuilds"
"""Metadata key with the number of rebuilds, which Nova changes together with the disk."""

_BAD_REQUEST, _NOT_FOUND, _CONFLICT = 400, 404, 409
_NAME_PREFIX = "server-"
_NO_HOST = "No valid host"
_STATES: Mapping[str, CloudServerState] = {
    "BUILD": "building",
    "ACTIVE": "running",
    "REBOOT": "running",
    "HARD_REBOOT": "running",
    "SHUTOFF": "stopped",
    "REBUILD": "rebuilding",
    "PAUSED": "suspended",
    "SUSPENDED": "suspended",
    "ERROR": "failed",
    "DELETED": "removing",
    "SOFT_DELETED": "removing",
}
_TASKS: Mapping[str, CloudServerState] = {
    "powering-off": "stopping",
    "powering-on": "building",
    "deleting": "removing",
    "rebuilding": "rebuilding",
    "rebuild_block_device_mapping": "rebuilding",
    "rebuild_spawning": "rebuilding",
    "scheduling": "queued",
}


class _Image(msgspec.Struct, frozen=True):
    id: str


class _Flavor(msgspec.Struct, frozen=True):
    original_name: str
    vcpus: int = 0
    ram: int = 0
    disk: int = 0


class _Fault(msgspec.Struct, frozen=True):
    message: str = ""


class _Group(msgspec.Struct, frozen=True):
    id: str
    name: str


class NovaServer(msgspec.Struct, frozen=True):
    """A server as Nova describes it."""

    id: str
    name: str
    status: str
    created: datetime
    updated: datetime
    flavor: _Flavor
    image: _Image | str = ""
    metadata: dict[str, str] = {}
    fault: _Fault | None = None
    task: str | None = msgspec.field(name="OS-EXT-STS:task_state", default=None)
    launched_at: str | None = msgspec.field(name="OS-SRV-USG:launched_at", default=None)
    host: str | None = msgspec.field(name="OS-EXT-SRV-ATTR:hypervisor_hostname", default=None)

    @property
    def state(self) -> CloudServerState:
        if self.task is not None and self.task in _TASKS and self.status != "ERROR":
            return _TASKS[self.task]
        return _STATES.get(self.status, "unknown")

    @property
    def image_id(self) -> str:
        return "" if isinstance(self.image, str) else self.image.id

    @property
    def version(self) -> str:
        """Digest of what changes. The time of the last change has whole seconds only."""
        seen = (
            self.id,
            self.status,
            self.task,
            self.updated,
            self.image_id,
            self.flavor,
            self.launched_at,
            self.host,
            self.metadata,
        )
        return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class OpenStackServers:
    """Capability of managing servers, with the permissions of the tenancy's own user."""

    access: TenancyAccess
    flavors: OpenStackFlavors
    images: OpenStackImages
    ports: OpenStackPorts
    hosts: HostCheck | None = None

    async def create_server(self, desired: CloudServerSpec) -> CloudServer:
        handle = desired.handle
        member = await self._member(handle.tenancy)
        if member is None:
            raise NotFound("tenancy", handle.tenancy)
        if await self.records(member, handle):
            raise AlreadyExists("server", handle.name)
        project = await self.access.project(handle.tenancy)
        port = await self.ports.record(member, project, Handle(handle.tenancy, desired.port))
        if port is None:
            raise NotFound("port", desired.port)
        if port.device_id:
            raise InUse("port", desired.port)
        body = await self._body(desired, port)
        hints = await self._hints(member, handle.tenancy)
        # Nova's policy allows the choice of a host to the manager only.
        session = self.access.manager_in(project) if desired.host else member
        try:
            created = await session.post("compute", "/servers", {"server": body, **hints}, "server", _Created)
        except ApiError as error:
            raise await self._create_error(error, member, desired) from None
        found = await self._record(member, created.id)
        if found is None:
            raise NotFound("server", handle.name)
        return await self._cloud_server(handle, found)

    async def find_server(self, handle: Handle) -> CloudServer | None:
        member = await self._member(handle.tenancy)
        record = None if member is None else await self._find(member, handle)
        return None if record is None else await self._cloud_server(handle, record)

    async def remove_server(self, handle: Handle) -> None:
        member = await self._member(handle.tenancy)
        if member is not None:
            for record in await self.records(member, handle):
                await member.delete("compute", f"/servers/{record.id}")

    async def start_server(self, handle: Handle) -> None:
        await self._act(handle, {"os-start": None}, allowed=("stopped",))

    async def stop_server(self, handle: Handle) -> None:
        await self._act(handle, {"os-stop": None}, allowed=("running",))

    async def reboot_server(self, handle: Handle, *, hard: bool) -> None:
        await self._act(handle, {"reboot": {"type": "HARD" if hard else "SOFT"}}, allowed=("running",))

    async def rebuild_server(
        self, handle: Handle, image: str, user_data: bytes | None = None, rebuilds: int | None = None
    ) -> None:
        _, record = await self.existing(handle)
        cloud_id, found = await self.images.cloud_id(image)
        if found.state != "ready":
            raise WrongState("image", image, state=found.state)
        body: dict[str, object] = {"imageRef": cloud_id}
        if user_data is not None:
            body["user_data"] = base64.b64encode(user_data).decode() if user_data else None
        if rebuilds is not None:
            body["metadata"] = {**record.metadata, REBUILDS_KEY: str(rebuilds)}
        await self._act(handle, {"rebuild": body}, allowed=("running", "stopped", "failed"))

    async def server_versions(self) -> AsyncIterator[Sequence[CloudServerVersion]]:
        async for tenancy, _, manager in self.access.sessions():
            async for page in manager.pages("compute", "/servers/detail", "servers", NovaServer):
                yield [
                    CloudServerVersion(Handle(tenancy, each.name), each.version)
                    for each in page
                    if each.name.startswith(_NAME_PREFIX)
                ]

    async def existing(self, handle: Handle) -> tuple[CloudSession, NovaServer]:
        """Return a server with the session of its tenancy, or raise NotFound."""
        member = await self._member(handle.tenancy)
        record = None if member is None else await self._find(member, handle)
        if member is None or record is None:
            raise NotFound("server", handle.name)
        return member, record

    async def records(self, session: CloudSession, handle: Handle) -> Sequence[NovaServer]:
        """Return all servers of a name. Nova's filter is a regular expression."""
        query = {"name": f"^{escape(handle.name)}$"}
        found = await session.all("compute", "/servers/detail", "servers", NovaServer, **query)
        return [each for each in found if each.name == handle.name]

    async def _find(self, session: CloudSession, handle: Handle) -> NovaServer | None:
        found = await self.records(session, handle)
        if len(found) < 2:  # noqa: PLR2004  two servers of one name
            return found[0] if found else None
        project = await self.access.project(handle.tenancy)
        port = await self.ports.record(session, project, Handle(handle.tenancy, found[0].metadata.get(PORT_KEY, "")))
        behind = [each for each in found if port is not None and each.id == port.device_id]
        losers = [each for each in found if each not in behind]
        if any(each.status == "BUILD" for each in losers):
            raise Unavailable(f"Two creates of the server {handle.name} are still under way: try again in a moment.")
        if len(behind) != 1 or any(each.status != "ERROR" for each in losers):
            raise Inconsistent("server", handle.name, part="server", found=len(found))
        for each in losers:  # of a create that was sent again, because its response was lost
            await session.delete("compute", f"/servers/{each.id}")
        return behind[0]

    async def _member(self, tenancy: str) -> CloudSession | None:
        try:
            return await self.access.member(tenancy)
        except NotFound:
            return None

    async def _body(self, desired: CloudServerSpec, port: NeutronPort) -> dict[str, object]:
        flavor = await self.flavors.find(desired.flavor)
        if flavor is None:
            raise NotFound("flavor", desired.flavor)
        if desired.host and self.hosts is not None:
            await self.hosts.check(desired.host, flavor)
        cloud_id, image = await self.images.cloud_id(desired.image)
        if image.state != "ready":
            raise WrongState("image", desired.image, state=image.state)
        labels = {sub(r"[^a-zA-Z0-9_:. -]", ":", name): value for name, value in desired.labels.items()}
        body: dict[str, object] = {
            "name": desired.handle.name,
            "hostname": desired.hostname,
            "flavorRef": flavor.id,
            "imageRef": cloud_id,
            "networks": [{"port": port.id}],
            "metadata": {**labels, PORT_KEY: desired.port, REBUILDS_KEY: str(desired.rebuilds)},
        }
        if desired.user_data:
            body["user_data"] = base64.b64encode(desired.user_data).decode()
        if desired.has_tenancy_key:
            body["key_name"] = project_name(desired.handle.tenancy)
        if desired.host:
            body["hypervisor_hostname"] = desired.host
        return body

    @staticmethod
    async def _hints(member: CloudSession, tenancy: str) -> dict[str, object]:
        groups = await member.items("compute", "/os-server-groups", "server_groups", _Group)
        group = next((each.id for each in groups if each.name == project_name(tenancy)), None)
        return {} if group is None else {"OS-SCH-HNT:scheduler_hints": {"group": group}}

    async def _create_error(self, error: ApiError, member: CloudSession, desired: CloudServerSpec) -> Exception:
        """Return the error for a create that Nova rejected, after another look for the server."""
        if await self.records(member, desired.handle):
            return AlreadyExists("server", desired.handle.name)
        if error.http_status == _CONFLICT or "in use" in error.reason:
            return InUse("port", desired.port)
        if error.http_status == _BAD_REQUEST and _NO_HOST in error.reason:
            return NoCapacity("this flavor")
        return error

    async def _act(self, handle: Handle, body: Mapping[str, object], *, allowed: Sequence[CloudServerState]) -> None:
        member, record = await self.existing(handle)
        if record.state not in allowed or record.task is not None:
            raise WrongState("server", handle.name, state=record.state)
        try:
            await member.post("compute", f"/servers/{record.id}/action", body)
        except ApiError as error:
            raise action_error(error, handle, record) from None

    async def _record(self, session: CloudSession, server: str) -> NovaServer | None:
        try:
            found: NovaServer = await session.get("compute", f"/servers/{server}", "server", NovaServer)
        except ApiError as error:
            if error.http_status != _NOT_FOUND:
                raise
            return None
        return found

    async def _cloud_server(self, handle: Handle, record: NovaServer) -> CloudServer:
        launched = None if record.launched_at is None else datetime.fromisoformat(record.launched_at)
        return CloudServer(
            handle=handle,
            id=record.id,
            state=record.state,
            flavor=await self.flavors.id_of_name(record.flavor.original_name),
            image=await self.images.our_id(record.image_id),
            rebuilds=int(record.metadata.get(REBUILDS_KEY, "0")),
            port=record.metadata.get(PORT_KEY, ""),
            version=record.version,
            created=record.created,
            launched=None if launched is None else launched.replace(tzinfo=UTC),
            host=record.host or "",
            fault=_fault(record),
        )


def _fault(record: NovaServer) -> str:
    """Return why a server failed: for one that found no host, with what its flavor needs."""
    reason = "" if record.fault is None else record.fault.message
    if _NO_HOST not in reason:
        return reason
    flavor = record.flavor
    size = f"{flavor.vcpus} CPUs, {flavor.ram} MiB of memory and {flavor.disk} GiB of disk"
    return f"no host has capacity for the flavor {flavor.original_name}: {size}"


class _Created(msgspec.Struct, frozen=True):
    id: str


def action_error(error: ApiError, handle: Handle, record: NovaServer) -> Exception:
    """Return the error for an action that Nova rejected."""
    if error.http_status == _NOT_FOUND:
        return NotFound("server", handle.name)
    if error.http_status == _CONFLICT:
        return WrongState("server", handle.name, state=record.state)
    return Rejected(error.reason)
