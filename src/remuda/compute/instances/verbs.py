"""What can be done to an instance that is there. It is done to its one server, and the answer is region's.

Whatever changes something, or lets somebody in, asks for the right to update; to read the console's output, the right
to read is enough.
"""

from dataclasses import dataclass

import msgspec

from remuda.access.context import Context
from remuda.access.principal import Verb
from remuda.compute.instances.matching import Matches
from remuda.compute.instances.service import Instances
from remuda.compute.permissions import permission
from remuda.compute.ports import RegionPort
from remuda.compute.tags import PROVENANCE
from remuda.kernel.errors import Invalid, NotFound
from remuda.kernel.secrets import Secret
from remuda.resources.metadata import check_tags
from remuda.resources.offers import ImageRead
from remuda.resources.reserved import is_reserved
from remuda.resources.wire import MetadataWrite, TagWire

__all__ = ["Verbs", "with_provenance"]

_MOST_TAGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """Start, stop, reboot, snapshot, and get into instances."""

    instances: Instances
    region: RegionPort
    matches: Matches

    async def start(self, context: Context, instance: str) -> None:
        """Start a stopped instance."""
        await self.region.start(context, await self._server(context, "update", instance))

    async def stop(self, context: Context, instance: str) -> None:
        """Stop a running instance."""
        await self.region.stop(context, await self._server(context, "update", instance))

    async def reboot(self, context: Context, instance: str, *, hard: bool) -> None:
        """Reboot a running instance."""
        await self.region.reboot(context, await self._server(context, "update", instance), hard=hard)

    async def snapshot(self, context: Context, instance: str, wanted: MetadataWrite) -> ImageRead:
        """Make an image of an instance."""
        server = await self._server(context, "update", instance)
        return await self.region.snapshot(context, server, with_provenance(wanted, instance))

    async def ssh_key(self, context: Context, instance: str) -> Secret:
        """Return the private key that opens an instance; there is none where an authority says who may log in."""
        found = await self.instances.find(context, permission("instances", "update"), instance)
        if found.spec.ssh_certificate_authority_id:
            raise NotFound("SSH key of the instance", instance)
        return await self.region.ssh_key(context, (await self.matches.one(found)).id)

    async def open_console(self, context: Context, instance: str) -> str:
        """Return where a browser sees an instance's screen."""
        return await self.region.open_console(context, await self._server(context, "update", instance))

    async def console_output(self, context: Context, instance: str, lines: int | None) -> str:
        """Return the last lines that an instance wrote to its console."""
        return await self.region.console_output(context, await self._server(context, "read", instance), lines)

    async def _server(self, context: Context, verb: Verb, instance: str) -> str:
        found = await self.instances.find(context, permission("instances", verb), instance)
        return (await self.matches.one(found)).id


def with_provenance(wanted: MetadataWrite, instance: str) -> MetadataWrite:
    """Return the metadata of a snapshot: the caller's tags but for those of services, and one that says whose it is."""
    kept = [tag for tag in wanted.tags if not is_reserved(tag.name)]
    check_tags(kept)
    if len(kept) >= _MOST_TAGS:
        remedy = f"send {_MOST_TAGS - 1} at most"
        raise Invalid("metadata.tags", "leaves no place for the one that says what it is a snapshot of", remedy=remedy)
    return msgspec.structs.replace(wanted, tags=(*kept, TagWire(name=PROVENANCE, value=instance)))
