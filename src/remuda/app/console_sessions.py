"""Console sessions of simulated clouds, checked against the present permissions of who opened them.

The address of a console is a credential of its own. Each time it is used, its viewer must still be allowed to open it:
by a permission to update the server or, if the server belongs to an instance, that instance.
"""

from dataclasses import dataclass

from remuda.access.checks import is_allowed_in_project
from remuda.access.principal import Principal
from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INSTANCE_TAG
from remuda.compute.names import permission as compute_permission
from remuda.identity.kinds.tenancy import Project
from remuda.identity.rbac.actors import Actors
from remuda.providers.contract.common import id_in
from remuda.providers.simulated.console import ConsoleSession
from remuda.region.kinds.servers import Server
from remuda.region.names import permission as region_permission
from remuda.region.servers.console_viewer import ConsoleViewer
from remuda.resources.conventions import organization_of, project_of
from remuda.resources.crud import find
from remuda.store.contract import Store

_SERVER = region_permission("servers", "update")
_INSTANCE = compute_permission("instances", "update")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSessions:
    """Check of console sessions."""

    store: Store
    actors: Actors

    async def is_permitted(self, session: ConsoleSession) -> bool:
        """Return whether the viewer of a session may still open the console, and what it shows still exists."""
        viewer, server = ConsoleViewer.parse(session.viewer), await find(self.store, Server, id_in(session.server.name))
        if viewer is None or server is None or server.is_deleting:
            return False
        organization, project = organization_of(server), project_of(server)
        owner = await find(self.store, Project, project)
        instance = server.metadata.labels.get(INSTANCE_TAG)
        if owner is None or owner.is_deleting or (instance is not None and not await self._exists(instance)):
            return False
        access = await self.actors.access(
            viewer.actor, session.opened, issuer=viewer.issuer, organization=viewer.organization
        )
        principal = Principal(subject=viewer.actor, type="user", access=access)
        needed = (_SERVER,) if instance is None else (_SERVER, _INSTANCE)
        return any(is_allowed_in_project(principal, each, organization, project) for each in needed)

    async def _exists(self, instance: str) -> bool:
        found = await find(self.store, ComputeInstance, instance)
        return found is not None and not found.is_deleting
