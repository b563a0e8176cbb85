"""What region shows of its things, as compute sees it, and what compute wants, as region is told it."""

from msgspec import UNSET, UnsetType

from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.compute.ports import NetworkSeen, Replacement, ServerFacts, ServerSeen, ServerWanted
from remuda.kernel.secrets import Secret
from remuda.quota.ports import Place
from remuda.region.networks.schema import NetworkRead
from remuda.region.servers.schema import (
    NetworkingWire,
    ReplaceWrite,
    ServerCreate,
    ServerCreateSpec,
    ServerRead,
    ServerSpecWire,
    ServerUpdate,
)
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead, TagWire


def place_of(metadata: ProjectMetadataRead) -> Place:
    """Return where something is."""
    return Place(metadata.organization_id, metadata.project_id)


def see_network(network: NetworkRead, *, is_gone: bool = False) -> NetworkSeen:
    """Return a network as compute sees it."""
    about = network.metadata
    return NetworkSeen(
        id=about.id,
        name=about.name,
        region=network.status.region_id,
        place=place_of(about),
        is_marked=about.deletion_time is not None,
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
        remade=status.times_made_again,
        replacements=status.replacements,
        revision=status.revision,
        is_marked=about.deletion_time is not None,
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
