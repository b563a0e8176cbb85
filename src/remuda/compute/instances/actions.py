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
from remuda.compute.instances.schema import ConsoleOutputRead, ConsoleSessionRead, SnapshotCreate, SshKeyRead
from remuda.compute.instances.server_lookup import Matches
from remuda.compute.instances.service import Instances
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.names import PROVENANCE, permission
from remuda.compute.ports import RegionPort
from remuda.kernel.errors import Invalid, Malformed, NotFound
from remuda.resources.crud import requested_event
from remuda.resources.metadata import check_tags
from remuda.resources.schema import ImageRead, MetadataWrite, TagWire
from remuda.resources.tags import is_reserved
from remuda.store.logs import Log

_MOST_TAGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """Actions on the instances of all projects."""

    instances: Instances
    region: RegionPort
    matches: Matches
    log: Log

    async def start(self, context: Context, instance: str) -> None:
        found = await self._found(context, "update", instance)
        await self.region.start(context, (await self.matches.one(found)).id)
        await self._tell(context, found, "Started")

    async def stop(self, context: Context, instance: str) -> None:
        found = await self._found(context, "update", instance)
        await self.region.stop(context, (await self.matches.one(found)).id)
        await self._tell(context, found, "Stopped")

    async def reboot(self, context: Context, instance: str, *, hard: bool) -> None:
        found = await self._found(context, "update", instance)
        await self.region.reboot(context, (await self.matches.one(found)).id, hard=hard)
        await self._tell(context, found, "Rebooted", hard=hard)

    async def snapshot(self, context: Context, instance: str, body: SnapshotCreate) -> ImageRead:
        """Create an image of an instance."""
        found = await self._found(context, "update", instance)
        server = (await self.matches.one(found)).id
        image = await self.region.snapshot(context, server, with_provenance(body.metadata, instance))
        await self._tell(context, found, "SnapshotMade", image=image.metadata.id)
        return image

    async def ssh_key(self, context: Context, instance: str) -> SshKeyRead:
        """Return the private SSH key of an instance, which has none if it trusts an SSH certificate authority."""
        found = await self._found(context, "update", instance)
        if found.spec.ssh_certificate_authority_id:
            raise NotFound("SSH key of the instance", instance)
        key = await self.region.ssh_key(context, (await self.matches.one(found)).id)
        await self._tell(context, found, "KeyHandedOut")
        return SshKeyRead(private_key=key)

    async def open_console(self, context: Context, instance: str) -> ConsoleSessionRead:
        """Return the address of an instance's console, for a browser."""
        found = await self._found(context, "update", instance)
        address = await self.region.open_console(context, (await self.matches.one(found)).id)
        await self._tell(context, found, "ConsoleOpened")
        return ConsoleSessionRead(url=address)

    async def console_output(self, context: Context, instance: str, *, length: int | None) -> ConsoleOutputRead:
        """Return the last lines of an instance's console output."""
        found = await self._found(context, "read", instance)
        contents = await self.region.console_output(context, (await self.matches.one(found)).id, length)
        return ConsoleOutputRead(contents=contents)

    async def _found(self, context: Context, verb: Verb, instance: str) -> ComputeInstance:
        found = await self.instances.find(context, permission("instances", verb), instance)
        if verb == "update" and found.is_deleting:
            raise Malformed("instance is being deleted")
        return found

    async def _tell(self, context: Context, found: ComputeInstance, event: str, **facts: Any) -> None:
        """Append an event to the timeline by itself, since the action writes no object that could carry it."""
        await self.log.append([requested_event(context, INSTANCE, found, event, **facts)])


def with_provenance(wanted: MetadataWrite, instance: str) -> MetadataWrite:
    """Return the metadata of a snapshot: the caller's tags but for those of services, and one that says whose it is."""
    kept = [tag for tag in wanted.tags if not is_reserved(tag.name)]
    check_tags(kept)
    if len(kept) >= _MOST_TAGS:
        remedy = f"send {_MOST_TAGS - 1} at most"
        raise Invalid("metadata.tags", "leaves no place for the one that says what it is a snapshot of", remedy=remedy)
    return msgspec.structs.replace(wanted, tags=(*kept, TagWire(name=PROVENANCE, value=instance)))
