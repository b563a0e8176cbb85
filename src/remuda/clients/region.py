"""Region, as other services reach it.

What is looked up for a caller is asked as that caller, with no more rights than both it and the service have. What the
service does, it does with its own rights, for whoever pays.

Servers and networks are followed in the lists that everybody asks: a service's role may read them everywhere, so what
it is shown is everything that this API has made.

What region shows of its things, as compute sees it, and what compute wants, as region is told it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.clients.transport import Send, ServiceNow
from remuda.clients.watch import Anew, Followed, News, Synced, Told, Watch
from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.compute.ports import (
    AllTold,
    AuthoritySeen,
    GroupSeen,
    NetworkSeen,
    Replacement,
    ServerFacts,
    ServerSeen,
    ServerWanted,
)
from remuda.http.authentication import acting_for
from remuda.http.routes import NOTHING
from remuda.http.transport import claim_of
from remuda.kernel.errors import Malformed, NotFound
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.quota.ports import ProjectRef
from remuda.region.authorities.schema import AuthorityPath
from remuda.region.catalogue.schema import FlavorQuery
from remuda.region.images.schema import ImageQuery, SnapshotCreate, SnapshotCreateSpec, SnapshotPath
from remuda.region.names import RegionPath
from remuda.region.networks.rules import read_network
from remuda.region.networks.schema import NetworkPath, NetworkRead
from remuda.region.securitygroups.schema import GroupPath
from remuda.region.servers.rules import read_server
from remuda.region.servers.schema import (
    ConsoleQuery,
    NetworkingWire,
    ReplaceWrite,
    RevisionQuery,
    ServerCreate,
    ServerCreateSpec,
    ServerPath,
    ServerRead,
    ServerSpecWire,
    ServerUpdate,
)
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import FlavorRead, ImageRead, MetadataWrite, ProjectMetadataRead, RegionRead, TagWire


def place_of(metadata: ProjectMetadataRead) -> ProjectRef:
    """Return where something is."""
    return ProjectRef(metadata.organization_id, metadata.project_id)


def see_network(network: NetworkRead, *, is_gone: bool = False) -> NetworkSeen:
    """Return a network as compute sees it."""
    about = network.metadata
    return NetworkSeen(
        id=about.id,
        name=about.name,
        region=network.status.region_id,
        place=place_of(about),
        is_deleting=about.deletion_time is not None,
        is_gone=is_gone,
    )


def see_server(server: ServerRead, *, is_gone: bool = False) -> ServerSeen:
    """Return a server as compute sees it."""
    about, status = server.metadata, server.status
    tags = {tag.name: tag.value for tag in about.tags}
    why, how = about.provisioning_status_detail, about.health_status_detail
    return ServerSeen(
        id=about.id,
        name=about.name,
        place=place_of(about),
        region=status.region_id,
        network=status.network_id,
        instance=tags.get(INSTANCE_TAG, ""),
        incarnation=tags.get(INCARNATION, ""),
        facts=_facts(server),
        settling=about.provisioning_status,
        reason="" if why is None else why.reason,
        message="" if why is None else why.message,
        health=about.health_status,
        health_message="" if how is None else how.message,
        power=status.power_state,
        private_ip=status.private_ip,
        public_ip=status.public_ip,
        mac_address=status.mac_address,
        drift=status.drift,
        remade=status.recreations,
        replacements=status.replacements,
        revision=status.revision,
        is_deleting=about.deletion_time is not None,
        is_gone=is_gone,
    )


def _facts(server: ServerRead) -> ServerFacts:
    spec, networking = server.spec, server.spec.networking or NetworkingWire()
    return ServerFacts(
        flavor=spec.flavor_id,
        image=spec.image_id,
        security_groups=networking.security_groups,
        public_ip=networking.public_ip,
        allowed_source_addresses=networking.allowed_source_addresses,
        authority=server.status.ssh_certificate_authority_id,
        user_data=Secret(spec.user_data) if spec.user_data else None,
        description="" if isinstance(server.metadata.description, UnsetType) else server.metadata.description,
        tags=tuple(sorted((tag.name, tag.value) for tag in server.metadata.tags)),
    )


def created(wanted: ServerWanted) -> ServerCreate:
    """Return how a new server is asked for."""
    facts = wanted.facts
    return ServerCreate(
        metadata=_metadata(wanted),
        spec=ServerCreateSpec(
            network_id=wanted.network,
            flavor_id=facts.flavor,
            image_id=facts.image,
            networking=_networking(facts),
            user_data=_text(facts.user_data),
            ssh_certificate_authority_id=facts.authority or None,
        ),
    )


def changed(wanted: ServerWanted) -> ServerUpdate:
    """Return how a server is asked to be another one from now on."""
    facts = wanted.facts
    return ServerUpdate(
        metadata=_metadata(wanted),
        spec=ServerSpecWire(
            flavor_id=facts.flavor,
            image_id=facts.image,
            networking=_networking(facts),
            user_data=_text(facts.user_data),
        ),
    )


def replaced(wanted: Replacement) -> ReplaceWrite:
    """Return how a server is asked for in the place of another."""
    return ReplaceWrite(
        flavor_id=wanted.flavor,
        image_id=wanted.image,
        user_data=_text(wanted.user_data),
        ssh_certificate_authority_id=wanted.authority or None,
    )


def _metadata(wanted: ServerWanted) -> MetadataWrite:
    tags = tuple(TagWire(name=name, value=value) for name, value in wanted.facts.tags)
    return MetadataWrite(name=wanted.name, description=wanted.facts.description or UNSET, tags=tags)


def _networking(facts: ServerFacts) -> NetworkingWire:
    return NetworkingWire(
        security_groups=facts.security_groups,
        public_ip=facts.public_ip,
        allowed_source_addresses=facts.allowed_source_addresses,
    )


def _text(user_data: Secret | None) -> str:
    return "" if user_data is None else user_data.reveal()


SERVERS = Followed("list_servers", ServerRead, read_server)
"""All servers there are."""
NETWORKS = Followed("list_networks", NetworkRead, read_network)
"""All networks there are."""


def watch_servers(watch: Watch) -> AsyncGenerator[News[ServerRead]]:
    """Yield every server there is, then each that changes or goes, without end."""
    return watch(SERVERS)


def watch_networks(watch: Watch) -> AsyncGenerator[News[NetworkRead]]:
    """Yield every network there is, then each that changes or goes, without end; a marked one has a deletion time."""
    return watch(NETWORKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionLink:
    """What compute asks of region: its `RegionPort`."""

    asking: Send
    """Sends what is asked as the caller of a context."""
    acting: Send
    """Sends what the service does itself."""
    service: ServiceNow
    watch: Watch
    randomness: Randomness

    async def regions(self, context: Context, organization: str) -> Sequence[RegionRead]:
        """Return the regions that the caller may know of."""
        found: list[RegionRead] = await self.asking.ask("list_regions", NOTHING, _named(context, organization))
        return found

    async def flavors(
        self, context: Context, organization: str, region: str, *, fresh: bool = False
    ) -> Sequence[FlavorRead]:
        """Return the flavors that the caller may use."""
        query = FlavorQuery(fresh=fresh)
        asked = _named(context, organization)
        found: list[FlavorRead] = await self.asking.ask("list_flavors", RegionPath(region=region), asked, query=query)
        return found

    async def images(self, context: Context, organization: str, region: str) -> Sequence[ImageRead]:
        """Return the images that an organization may use, in whatever state."""
        query = ImageQuery(organizations=(organization,))
        asked = _named(context, organization)
        found: list[ImageRead] = await self.asking.ask("list_images", RegionPath(region=region), asked, query=query)
        return found

    async def capabilities(self, region: str) -> frozenset[str]:
        """Return what a region's provider has."""
        found: RegionRead = await self.acting.ask("get_region", RegionPath(region=region), await self._own(None))
        return frozenset(found.spec.features.capabilities)

    async def network(self, context: Context, network: str) -> NetworkSeen:
        """Return a network that the caller may read."""
        return see_network(await self.asking.ask("get_network", NetworkPath(network=network), context))

    async def security_group(self, context: Context, group: str) -> GroupSeen:
        """Return a security group that the caller may read."""
        found = await self.asking.ask("get_security_group", GroupPath(group=group), context)
        return GroupSeen(id=group, network=found.status.network_id)

    async def authority(self, context: Context, authority: str) -> AuthoritySeen:
        """Return an SSH certificate authority that the caller may read."""
        found = await self.asking.ask("get_ssh_certificate_authority", AuthorityPath(authority=authority), context)
        return AuthoritySeen(id=authority, place=place_of(found.metadata))

    async def find_network(self, network: str) -> NetworkSeen | None:
        """Return a network, or None if there is none."""
        try:
            found = await self.acting.ask("get_network", NetworkPath(network=network), await self._own(None))
        except (NotFound, Malformed):  # what is no id at all, as in a damaged label, is that of none
            return None
        return see_network(found)

    async def servers_of(self, instance: str, place: ProjectRef, region: str, network: str) -> Sequence[ServerSeen]:
        """Return the servers in this scope that say they belong to an instance.

        The tag alone finds one or two; where these are is looked at here, which is less than to ask for it.
        """
        found, scope = await self.servers_anywhere(instance, place), (place, region, network)
        return [each for each in found if (each.place, each.region, each.network) == scope]

    async def servers_anywhere(self, instance: str, payer: ProjectRef) -> Sequence[ServerSeen]:
        """Return all servers that say they belong to an instance."""
        query = NetworkedQuery(tag=(f"{INSTANCE_TAG}={instance}",))
        found: list[ServerRead] = await self.acting.ask("list_servers", NOTHING, await self._own(payer), query=query)
        return [see_server(each) for each in found]

    async def create_server(self, wanted: ServerWanted, operation: str) -> ServerSeen:
        """Make a server, once for each operation."""
        context = await self._own(wanted.payer, wanted.actor, operation)
        return see_server(await self.acting.ask("create_server", NOTHING, context, created(wanted)))

    async def change_server(self, wanted: ServerWanted) -> ServerSeen:
        context = await self._own(wanted.payer, wanted.actor)
        path, query = ServerPath(server=wanted.id), RevisionQuery(revision=wanted.revision)
        return see_server(await self.acting.ask("update_server", path, context, changed(wanted), query))

    async def replace_server(self, wanted: Replacement) -> ServerSeen:
        """Put another server in the place of one, once for each operation."""
        context = await self._own(wanted.payer, wanted.actor, wanted.operation)
        path, query = ServerPath(server=wanted.server), RevisionQuery(revision=wanted.revision)
        return see_server(await self.acting.ask("replace_server", path, context, replaced(wanted), query))

    async def delete_server(self, server: str, payer: ProjectRef) -> None:
        """Ask for a server to go; one that is not there is fine."""
        try:
            await self.acting("delete_server", ServerPath(server=server), await self._own(payer))
        except NotFound:
            return

    async def start(self, context: Context, server: str) -> None:
        await self.acting("start_server", ServerPath(server=server), await self._for(context))

    async def stop(self, context: Context, server: str) -> None:
        await self.acting("stop_server", ServerPath(server=server), await self._for(context))

    async def reboot(self, context: Context, server: str, *, hard: bool) -> None:
        name = "hard_reboot_server" if hard else "soft_reboot_server"
        await self.acting(name, ServerPath(server=server), await self._for(context))

    async def ssh_key(self, context: Context, server: str) -> Secret:
        """Return the private key that opens a server."""
        found = await self.acting.ask("get_server_ssh_key", ServerPath(server=server), await self._for(context))
        key: Secret = found.private_key
        return key

    async def open_console(self, context: Context, server: str) -> str:
        """Return where a browser sees a server's screen."""
        found = await self.acting.ask("open_server_console", ServerPath(server=server), await self._for(context))
        return str(found.url)

    async def console_output(self, context: Context, server: str, lines: int | None) -> str:
        """Return the last lines that a server wrote to its console."""
        path, query = ServerPath(server=server), ConsoleQuery(length=lines)
        found = await self.acting.ask("get_server_console_output", path, await self._for(context), query=query)
        return str(found.contents)

    async def snapshot(self, context: Context, server: str, metadata: MetadataWrite) -> ImageRead:
        body = SnapshotCreate(metadata=metadata, spec=SnapshotCreateSpec())
        path = SnapshotPath(server=server)
        made: ImageRead = await self.acting.ask("snapshot_server", path, await self._for(context), body)
        return made

    async def servers(self) -> AsyncIterator[ServerSeen | AllTold]:
        """Yield every server that says it belongs to an instance, then each that changes or goes.

        Whenever all of them have been told, their ids are. These are the keys of a dictionary, at which the garbage
        collector does not look: a set of 100,000 it would go through again and again, which holds the loop.
        """
        there: dict[str, None] | None = None
        async with aclosing(watch_servers(self.watch)) as news:
            async for each in news:
                if isinstance(each, Anew):
                    there = {}
                elif isinstance(each, Synced):
                    yield AllTold((there or {}).keys())
                    there = None
                elif (seen := see_server(each.item, is_gone=each.type == "deleted")).instance:
                    if there is not None and seen.is_gone:
                        there.pop(seen.id, None)
                    elif there is not None:
                        there[seen.id] = None
                    yield seen

    async def networks(self) -> AsyncIterator[NetworkSeen]:
        """Yield every network, then each that changes or goes."""
        async with aclosing(watch_networks(self.watch)) as news:
            async for each in news:
                if isinstance(each, Told):
                    yield see_network(each.item, is_gone=each.type == "deleted")

    async def _own(self, payer: ProjectRef | None, actor: str = "", operation: str | None = None) -> Context:
        """Return the context of something that the service does by itself."""
        service = await self.service()
        if payer is not None:
            service = service.with_payer(payer.organization, payer.project)
        return Context(
            principal=replace(service, actor=actor) if actor else service,
            operation=operation or random_id(self.randomness),
            key=operation,
        )

    async def _for(self, context: Context) -> Context:
        """Return the context of something that the service does for a caller whose right it has judged."""
        service = acting_for(await self.service(), claim_of(context.principal))
        return Context(principal=service, operation=context.operation, trace_id=context.trace_id)


def _named(context: Context, organization: str) -> Context:
    """Return the context of what is asked for one organization."""
    return Context(
        principal=replace(context.principal, organization=organization),
        operation=context.operation,
        trace_id=context.trace_id,
    )
