"""Actions on instances. Each is performed on the one server of the instance, by region.

An action that changes the instance or gives access to it requires the permission to update the instance; reading the
console output requires the permission to read it. Access by the SSH key or the console is recorded in the timeline
before the secret is returned, without the secret. While an instance is being deleted, only the console output is
available; every other action is rejected, as an update is.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from remuda.access.principal import Context, Verb
from remuda.compute.instances.schema import (
    InstanceConsoleOutputRead,
    InstanceConsoleSessionRead,
    InstanceSnapshotCreate,
    InstanceSshKeyRead,
)
from remuda.compute.instances.server_lookup import ServerLookup
from remuda.compute.instances.service import Instances
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.names import PROVENANCE
from remuda.compute.ports import RegionClient
from remuda.kernel.errors import Invalid, NotFound
from remuda.region.images.schema import ServerSnapshotCreate, ServerSnapshotCreateSpec
from remuda.resources.crud import requested_event
from remuda.resources.schema import ImageRead, MetadataWrite, TagWire
from remuda.resources.tags import check_tags, is_reserved
from remuda.store.logs import Log

_MAX_TAGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """Actions on the instances of all projects."""

    instances: Instances
    region: RegionClient
    lookup: ServerLookup
    log: Log

    async def start(self, context: Context, instance: str) -> None:
        found, server, caller = await self._server(context, "update", instance)
        await self.region.api.start_server(caller, server)
        await self._record(context, found, "Started")

    async def stop(self, context: Context, instance: str) -> None:
        found, server, caller = await self._server(context, "update", instance)
        await self.region.api.stop_server(caller, server)
        await self._record(context, found, "Stopped")

    async def reboot(self, context: Context, instance: str, *, hard: bool) -> None:
        found, server, caller = await self._server(context, "update", instance)
        reboot = self.region.api.hard_reboot_server if hard else self.region.api.soft_reboot_server
        await reboot(caller, server)
        await self._record(context, found, "Rebooted", hard=hard)

    async def snapshot(self, context: Context, instance: str, body: InstanceSnapshotCreate) -> ImageRead:
        found, server, caller = await self._server(context, "update", instance)
        snapshot = ServerSnapshotCreate(
            metadata=with_provenance(body.metadata, instance), spec=ServerSnapshotCreateSpec()
        )
        image = await self.region.api.snapshot_server(caller, server, snapshot)
        await self._record(context, found, "SnapshotCreated", image=image.metadata.id)
        return image

    async def ssh_key(self, context: Context, instance: str) -> InstanceSshKeyRead:
        """Return the private SSH key of an instance, which has none if it trusts an SSH certificate authority."""
        found = await self._find(context, "update", instance)
        if found.spec.ssh_certificate_authority_id:
            raise NotFound("SSH key of the instance", instance)
        server, caller = await self._target(context, found)
        key = await self.region.api.get_server_ssh_key(caller, server)
        await self._record(context, found, "KeyRead")
        return InstanceSshKeyRead(private_key=key.private_key)

    async def open_console(self, context: Context, instance: str) -> InstanceConsoleSessionRead:
        found, server, caller = await self._server(context, "update", instance)
        session = await self.region.api.open_server_console(caller, server)
        await self._record(context, found, "ConsoleOpened")
        return InstanceConsoleSessionRead(url=session.url)

    async def console_output(self, context: Context, instance: str, *, length: int | None) -> InstanceConsoleOutputRead:
        _, server, caller = await self._server(context, "read", instance)
        output = await self.region.api.get_server_console_output(caller, server, length=length)
        return InstanceConsoleOutputRead(contents=output.contents)

    async def _server(self, context: Context, verb: Verb, instance: str) -> tuple[ComputeInstance, str, Context]:
        """Return an instance, its server, and the context of a call for the caller, whose permission is checked."""
        found = await self._find(context, verb, instance)
        return found, *await self._target(context, found)

    async def _target(self, context: Context, found: ComputeInstance) -> tuple[str, Context]:
        server = await self.lookup.get(found)
        return server.metadata.id, await self.region.caller.on_behalf_of(context)

    async def _find(self, context: Context, verb: Verb, instance: str) -> ComputeInstance:
        found = await self.instances.get_authorized(context, verb, instance)
        if verb == "update":
            self.instances.reject_if_deleting(found)
        return found

    async def _record(self, context: Context, found: ComputeInstance, event: str, **facts: Any) -> None:
        """Append an event to the timeline by itself, since the action writes no object that could carry it."""
        await self.log.append([requested_event(context, INSTANCE, found, event, **facts)])


def with_provenance(body: MetadataWrite, instance: str) -> MetadataWrite:
    """Return the metadata of a snapshot: the caller's tags without reserved ones, and the tag of the instance."""
    kept = [tag for tag in body.tags if not is_reserved(tag.name)]
    check_tags(kept)
    if len(kept) >= _MAX_TAGS:
        remedy = f"send {_MAX_TAGS - 1} at most"
        raise Invalid("metadata.tags", "leaves none for the tag that names the source instance", remedy=remedy)
    return msgspec.structs.replace(body, tags=(*kept, TagWire(name=PROVENANCE, value=instance)))
