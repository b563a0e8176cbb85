"""What is stored of a server in whose place another one is wanted."""

from datetime import datetime

import msgspec

from remuda.access.principal import Principal
from remuda.region.kinds.server_parts import ServerImage
from remuda.region.kinds.servers import Server, ServerSpec
from remuda.region.servers.rules import hidden_user_data
from remuda.region.servers.wire import ReplaceWrite, SshInjectionWire
from remuda.resources.metadata import changed_metadata, writable_metadata

__all__ = ["replaced_server"]

replace = msgspec.structs.replace


def replaced_server(server: Server, wanted: ReplaceWrite, by: Principal, *, operation: str, now: datetime) -> Server:
    """Return a server in whose place another one is wanted. An authority that comes or goes changes who can log in."""
    written = writable_metadata(server.metadata, server.spec.tags)
    spec = replace(
        server.spec,
        ssh_injection=_injection_after(server.spec, wanted.ssh_certificate_authority_id),
        flavor_id=wanted.flavor_id,
        image=ServerImage(id=wanted.image_id),
        user_data=hidden_user_data(wanted.user_data),
        ssh_certificate_authority_id=wanted.ssh_certificate_authority_id or "",
        replacement=server.spec.replacement + 1,
        replacing_operation=operation,
    )
    return replace(server, metadata=changed_metadata(server.metadata, written, by.subject, now), spec=spec)


def _injection_after(spec: ServerSpec, authority: str | None) -> SshInjectionWire:
    before = spec.ssh_injection or "identityKeypair"
    if authority is not None:
        return "ca"
    if before != "ca":
        return before
    return "none" if spec.infrastructure_ref else "identityKeypair"
