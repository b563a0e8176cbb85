"""Rules of servers: validation, new, updated and replaced servers, views."""

from datetime import datetime
from ipaddress import IPv4Network

from msgspec.structs import fields, replace

from remuda.access.principal import Principal
from remuda.http.responses import GuardedView, etag_view
from remuda.kernel.errors import Invalid, Malformed, PreconditionFailed
from remuda.kernel.fields import common_fields
from remuda.kernel.ids import derived_id
from remuda.kernel.secrets import Secret
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import (
    AddressPair,
    LastAppliedSpec,
    PublicIpAllocation,
    Server,
    ServerGroup,
    ServerImage,
    ServerNetwork,
    ServerSpec,
    drift_of,
)
from remuda.region.names import permission
from remuda.region.networks.rules import child_metadata
from remuda.region.servers.schema import (
    ReplaceWrite,
    ServerCreate,
    ServerCreateSpec,
    ServerNetworkingWire,
    ServerRead,
    ServerSpecWire,
    ServerStatusRead,
    ServerUpdate,
    SshInjectionWire,
)
from remuda.resources.conventions import NAME, network_of, region_of
from remuda.resources.crud import each_once
from remuda.resources.ipv4 import find_prefix, hinted
from remuda.resources.metadata import changed_metadata, new_tags, read_project_metadata, updated_tags, writable_metadata
from remuda.resources.query import is_allowed_for
from remuda.resources.tags import relabelled, tag_labels

_AUTHORITY, _INJECTION, _USER_DATA = "ssh_certificate_authority_id", "ssh_injection", "user_data"
_created = common_fields(ServerCreateSpec, ServerSpec, without=(_AUTHORITY, _INJECTION, _USER_DATA))
_copied = common_fields(ServerSpecWire, ServerSpec, without=(_USER_DATA,))
_replaced = common_fields(ReplaceWrite, ServerSpec, without=("rebuilds", _AUTHORITY, _USER_DATA))
_applied = common_fields(ServerSpec, LastAppliedSpec)
_compared = common_fields(ReplaceWrite, LastAppliedSpec, without=(_AUTHORITY,))
"""The fields that are copied from the one type to the other, or compared; what is named here is converted."""
_REBUILT = ("image_id", "rebuilds", _USER_DATA)
_IMMUTABLE = [
    each for each in fields(ReplaceWrite) if each.name in {*ServerSpecWire.__struct_fields__}.difference(_REBUILT)
]
"""The fields that an update must not change: only a replacement applies them."""


def server_id(network: str, name: str) -> str:
    """Return the id of the server of this name on a network, which is unique there."""
    return derived_id(network, name)


def injection_of(desired: ServerCreateSpec) -> SshInjectionWire:
    """Return the requested SSH injection, or the default one."""
    if desired.ssh_injection is not None:
        return desired.ssh_injection
    return "identityKeypair" if desired.ssh_certificate_authority_id is None else "ca"


def check_injection(desired: ServerCreateSpec) -> None:
    injection, authority = injection_of(desired), desired.ssh_certificate_authority_id
    if injection == "ca" and authority is None:
        raise Invalid("spec.sshInjection", "sshInjection ca requires sshCertificateAuthorityId")
    if injection != "ca" and authority is not None:
        raise Invalid("spec.sshInjection", f"sshInjection {injection} cannot be used with sshCertificateAuthorityId")
    if desired.infrastructure_ref and injection == "identityKeypair":
        raise Invalid("spec.infrastructureRef", "infrastructureRef cannot be used with sshInjection identityKeypair")


def check_sources(networking: ServerNetworkingWire | None) -> None:
    for prefix in () if networking is None else networking.allowed_source_addresses:
        if find_prefix(prefix) is None:
            message = hinted("allowedSourceAddresses must contain valid CIDR prefixes", prefix)
            raise Invalid("spec.networking.allowedSourceAddresses", message)


def check_update(server: Server, desired: ServerUpdate) -> None:
    """Raise an error for an update of an immutable field, or of a deleting server."""
    if server.is_deleting:
        raise Malformed("server is being deleted")
    if desired.metadata.name != server.metadata.labels[NAME]:
        raise Invalid("metadata.name", "server names are immutable")
    present = _read_spec(server.spec)
    for each in _IMMUTABLE:
        if getattr(desired.spec, each.name) != getattr(present, each.name):
            name = each.name.removesuffix("_id").replace("_", " ")
            raise Invalid(f"spec.{each.encode_name}", f"server {name} is immutable")


def sealed_user_data(text: str) -> Secret | None:
    return Secret(text) if text else None


def user_data_of(spec: ServerSpec) -> str:
    return "" if spec.user_data is None else spec.user_data.reveal()


def new_server(desired: ServerCreate, network: Network, by: Principal, *, operation: str) -> Server:
    spec, tags = desired.spec, new_tags(desired.metadata, by)
    name = server_id(network.name, desired.metadata.name)
    return Server(
        metadata=child_metadata(name, desired.metadata, network, by, tag_labels=tag_labels(tags)),
        spec=_networked(
            ServerSpec(
                **_created(spec),
                image=ServerImage(id=spec.image_id),
                ssh_certificate_authority_id=spec.ssh_certificate_authority_id or "",
                ssh_injection=injection_of(spec),
                user_data=sealed_user_data(spec.user_data),
                operation=operation,
                tags=tags,
            ),
            network.name,
            spec.networking,
        ),
    )


def updated_server(server: Server, desired: ServerUpdate, by: Principal, now: datetime) -> Server:
    tags = updated_tags(server.spec.tags, desired.metadata, by)
    spec = replace(
        server.spec,
        **_copied(desired.spec) | {"rebuilds": max(desired.spec.rebuilds, server.spec.rebuilds)},
        image=ServerImage(id=desired.spec.image_id),
        user_data=sealed_user_data(desired.spec.user_data),
        tags=tags,
    )
    metadata = changed_metadata(server.metadata, desired.metadata, by, now)
    return replace(
        server,
        metadata=replace(metadata, labels=relabelled(metadata.labels, server.spec.tags, tags)),
        spec=_networked(spec, network_of(server), desired.spec.networking),
    )


def _networked(spec: ServerSpec, network: str, desired: ServerNetworkingWire | None) -> ServerSpec:
    desired = desired or ServerNetworkingWire()
    pairs = tuple(
        AddressPair(cidr=str(IPv4Network(prefix, strict=False)))
        for prefix in each_once(desired.allowed_source_addresses)
    )
    return replace(
        spec,
        networks=(ServerNetwork(id=network, allowed_address_pairs=pairs),),
        security_groups=tuple(ServerGroup(id=group) for group in each_once(desired.security_groups)),
        public_ip_allocation=PublicIpAllocation(enabled=True) if desired.public_ip else None,
    )


def writable_server(server: Server) -> ServerUpdate:
    return ServerUpdate(metadata=writable_metadata(server.metadata, server.spec.tags), spec=_read_spec(server.spec))


def _read_spec(spec: ServerSpec) -> ServerSpecWire:
    return ServerSpecWire(
        **_copied(spec), image_id=spec.image.id, networking=_read_networking(spec), user_data=user_data_of(spec)
    )


def _read_networking(spec: ServerSpec) -> ServerNetworkingWire | None:
    pairs = spec.networks[0].allowed_address_pairs if spec.networks else ()
    networking = ServerNetworkingWire(
        security_groups=tuple(group.id for group in spec.security_groups),
        public_ip=spec.has_public_ip,
        allowed_source_addresses=tuple(pair.cidr for pair in pairs),
    )
    return None if networking == ServerNetworkingWire() else networking


def read_server(server: Server) -> ServerRead:
    spec, status = server.spec, server.status
    return ServerRead(
        metadata=read_project_metadata(server.metadata, spec.tags, status.conditions),
        spec=_read_spec(spec),
        status=ServerStatusRead(
            region_id=region_of(server),
            network_id=network_of(server),
            ssh_certificate_authority_id=spec.ssh_certificate_authority_id,
            ssh_injection=spec.ssh_injection or "identityKeypair",
            infrastructure_ref=spec.infrastructure_ref,
            power_state=status.phase,
            private_ip=status.private_ip,
            public_ip=status.public_ip,
            mac_address=status.mac_address,
            drift=drift_of(server),
            recreations=status.recreations,
            replacements=spec.replacement,
            revision=_revision_of(server),
        ),
    )


def check_revision(server: Server, revision: str | None) -> None:
    if revision is not None and revision != _revision_of(server):
        raise PreconditionFailed("Server", server.name, precondition="revision")


def _revision_of(server: Server) -> str:
    return f"{server.uid}.{server.metadata.generation}"


def without_user_data(server: Server) -> Server:
    return server if server.spec.user_data is None else replace(server, spec=replace(server.spec, user_data=None))


_UPDATE = permission("servers", "update")

SERVER_VIEW = GuardedView(
    etag_view(read_server, writable_server),
    hidden=without_user_data,
    is_shown=lambda reader, server: is_allowed_for(reader, _UPDATE, server),
)
"""Servers. Their user data is shown to those who may update the server."""


def replaced_server(server: Server, desired: ReplaceWrite, by: Principal, *, operation: str, now: datetime) -> Server:
    """Return a server whose replacement is requested. An authority that is added or removed changes the SSH injection.

    A request for the last applied spec cancels a replacement that has not started.
    """
    written = writable_metadata(server.metadata, server.spec.tags)
    authority = desired.ssh_certificate_authority_id or ""
    started, applied = server.status.replacement.started, last_applied_spec(server)
    is_reverting = server.spec.replacement > started and _matches(applied, desired)
    spec = replace(
        server.spec,
        **_replaced(desired),
        ssh_injection=applied.ssh_injection if is_reverting else _injection_after(server.spec, authority or None),
        image=ServerImage(id=desired.image_id),
        rebuilds=max(desired.rebuilds, server.spec.rebuilds),
        user_data=sealed_user_data(desired.user_data),
        ssh_certificate_authority_id=authority,
        replacement=started if is_reverting else server.spec.replacement + 1,
        last_applied=None if is_reverting else applied,
        replacing_operation=operation,
    )
    return replace(server, metadata=changed_metadata(server.metadata, written, by, now), spec=spec)


def last_applied_spec(server: Server) -> LastAppliedSpec:
    """Return the spec that a server has or is created with: the desired one, unless its replacement is pending."""
    spec, replacement = server.spec, server.status.replacement
    if spec.last_applied is not None and spec.replacement > replacement.started:
        return spec.last_applied
    return LastAppliedSpec(**_applied(spec), image_id=spec.image.id)


def _matches(applied: LastAppliedSpec, desired: ReplaceWrite) -> bool:
    is_same_authority = applied.ssh_certificate_authority_id == (desired.ssh_certificate_authority_id or "")
    return is_same_authority and _compared(applied) == _compared(desired)


def _injection_after(spec: ServerSpec, authority: str | None) -> SshInjectionWire:
    before = spec.ssh_injection or "identityKeypair"
    if authority is not None:
        return "ca"
    if before != "ca":
        return before
    return "none" if spec.infrastructure_ref else "identityKeypair"
