"""What can be done to an instance that is there. It is done to its one server, and the answer is region's.

Whatever changes something, or lets somebody in, asks for the right to update; to read the console's output, the right
to read is enough. Who is let in, by the SSH key or the console, is told in the timeline before the secret is handed
over; the secret is not. While an instance is being deleted, only that output is there; all else is refused as a change
is.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from remuda.access.principal import Context, Verb
from remuda.compute.instances.server_lookup import Matches
from remuda.compute.instances.service import Instances
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.names import PROVENANCE, permission
from remuda.compute.ports import RegionPort
from remuda.kernel.errors import Invalid, Malformed, NotFound
from remuda.kernel.secrets import Secret
from remuda.resources.crud import requested
from remuda.resources.metadata import check_tags
from remuda.resources.schema import ImageRead, MetadataWrite, TagWire
from remuda.resources.tags import is_reserved
from remuda.store.logs import Log

_MOST_TAGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """Start, stop, reboot, snapshot, and get into instances."""

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

    async def snapshot(self, context: Context, instance: str, wanted: MetadataWrite) -> ImageRead:
        found = await self._found(context, "update", instance)
        server = (await self.matches.one(found)).id
        image = await self.region.snapshot(context, server, with_provenance(wanted, instance))
        await self._tell(context, found, "SnapshotMade", image=image.metadata.id)
        return image

    async def ssh_key(self, context: Context, instance: str) -> Secret:
        """Return the private key that opens an instance; there is none where an authority says who may log in."""
        found = await self._found(context, "update", instance)
        if found.spec.ssh_certificate_authority_id:
            raise NotFound("SSH key of the instance", instance)
        key = await self.region.ssh_key(context, (await self.matches.one(found)).id)
        await self._tell(context, found, "KeyHandedOut")
        return key

    async def open_console(self, context: Context, instance: str) -> str:
        """Return where a browser sees an instance's screen."""
        found = await self._found(context, "update", instance)
        address = await self.region.open_console(context, (await self.matches.one(found)).id)
        await self._tell(context, found, "ConsoleOpened")
        return address

    async def console_output(self, context: Context, instance: str, lines: int | None) -> str:
        """Return the last lines that an instance wrote to its console."""
        found = await self._found(context, "read", instance)
        return await self.region.console_output(context, (await self.matches.one(found)).id, lines)

    async def _found(self, context: Context, verb: Verb, instance: str) -> ComputeInstance:
        found = await self.instances.find(context, permission("instances", verb), instance)
        if verb == "update" and found.is_marked:
            raise Malformed("instance is being deleted")
        return found

    async def _tell(self, context: Context, found: ComputeInstance, event: str, **facts: Any) -> None:
        """Tell the timeline what was done: nothing is written here that it could be told with."""
        await self.log.append([requested(context, INSTANCE, found, event, **facts)])


def with_provenance(wanted: MetadataWrite, instance: str) -> MetadataWrite:
    """Return the metadata of a snapshot: the caller's tags but for those of services, and one that says whose it is."""
    kept = [tag for tag in wanted.tags if not is_reserved(tag.name)]
    check_tags(kept)
    if len(kept) >= _MOST_TAGS:
        remedy = f"send {_MOST_TAGS - 1} at most"
        raise Invalid("metadata.tags", "leaves no place for the one that says what it is a snapshot of", remedy=remedy)
    return msgspec.structs.replace(wanted, tags=(*kept, TagWire(name=PROVENANCE, value=instance)))
