"""What is stored of a server in whose place another one is wanted."""

from datetime import datetime

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.region.kinds.server_parts import Replacement, ServerImage, Stands
from remuda.region.kinds.servers import Server, ServerSpec
from remuda.region.servers.rules import hidden_user_data
from remuda.region.servers.schema import ReplaceWrite, SshInjectionWire
from remuda.resources.metadata import changed_metadata, writable_metadata


def replaced_server(server: Server, wanted: ReplaceWrite, by: Principal, *, operation: str, now: datetime) -> Server:
    """Return a server in whose place another one is wanted. An authority that comes or goes changes who can log in.

    If that is what stands, and its replacement has not begun, the wish for another is taken back instead.
    """
    written = writable_metadata(server.metadata, server.spec.tags)
    authority = wanted.ssh_certificate_authority_id or ""
    begun, stands = (server.status.replacement or Replacement()).counter, what_stands(server)
    is_taken_back = server.spec.replacement > begun and _stands_as(stands, wanted)
    spec = replace(
        server.spec,
        ssh_injection=stands.ssh_injection if is_taken_back else _injection_after(server.spec, authority or None),
        flavor_id=wanted.flavor_id,
        image=ServerImage(id=wanted.image_id),
        user_data=hidden_user_data(wanted.user_data),
        ssh_certificate_authority_id=authority,
        replacement=begun if is_taken_back else server.spec.replacement + 1,
        stands=None if is_taken_back else stands,
        replacing_operation=operation,
    )
    return replace(server, metadata=changed_metadata(server.metadata, written, by.subject, now), spec=spec)


def what_stands(server: Server) -> Stands:
    """Return what a server is, or is being made: what is wanted, unless that waits for its turn."""
    spec, turn = server.spec, server.status.replacement or Replacement()
    if spec.stands is not None and spec.replacement > turn.counter:
        return spec.stands
    return Stands(
        flavor_id=spec.flavor_id,
        image_id=spec.image.id,
        ssh_certificate_authority_id=spec.ssh_certificate_authority_id,
        ssh_injection=spec.ssh_injection,
    )


def _stands_as(stands: Stands, wanted: ReplaceWrite) -> bool:
    """Tell whether what stands is what is wanted."""
    return (stands.flavor_id, stands.image_id, stands.ssh_certificate_authority_id) == (
        wanted.flavor_id,
        wanted.image_id,
        wanted.ssh_certificate_authority_id or "",
    )


def _injection_after(spec: ServerSpec, authority: str | None) -> SshInjectionWire:
    before = spec.ssh_injection or "identityKeypair"
    if authority is not None:
        return "ca"
    if before != "ca":
        return before
    return "none" if spec.infrastructure_ref else "identityKeypair"
