"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, Nothing
from remuda.region.authorities import schema as wire
from remuda.region.authorities.objects import AUTHORITY_VIEW
from remuda.region.authorities.service import Authorities
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.resources.query import ProjectQuery


async def list_all(
    authorities: Authorities, call: Call[Nothing, ProjectQuery, Nothing]
) -> Collection[SSHCertificateAuthority, list[wire.AuthorityRead]]:
    return await authorities.list(call.context, call.query)


async def create(
    authorities: Authorities, call: Call[Nothing, Nothing, wire.AuthorityCreate]
) -> Shown[wire.AuthorityRead]:
    return Shown(AUTHORITY_VIEW, await authorities.create(call.context, call.body))


async def get(
    authorities: Authorities, call: Call[wire.AuthorityPath, Nothing, Nothing]
) -> Rendered[wire.AuthorityRead]:
    found = await authorities.get(call.context, call.path.authority)
    return untag(await authorities.store.get_view(SSHCertificateAuthority, found.name, AUTHORITY_VIEW))


async def delete(authorities: Authorities, call: Call[wire.AuthorityPath, Nothing, Nothing]) -> None:
    """Give an authority up."""
    await authorities.delete(call.context, call.path.authority)
