"""The measured API: machines in a store, with their permissions, behind 120 routes."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.http import wire
from bench.kinds import MACHINE, ORGANIZATION, PROJECT, Machine, labels_of
from remuda.access.checks import is_allowed_in_project, require_in_organization, require_in_project
from remuda.access.principal import AccessList, OrganizationAccess, Permission, Principal
from remuda.http.authentication import RequestCredentials
from remuda.http.responses import Collection, Rendered, Viewed, split_etag
from remuda.http.routes import AnyRoute, Call, Route, Table
from remuda.http.schema import ListQuery, Nothing
from remuda.kernel.errors import NotFound, Unauthenticated
from remuda.store.contract import Store

__all__ = ["MEMBER", "OPERATOR", "ROUTES", "Service", "Tokens", "table"]

ROUTES = 120
"""How many routes the table has."""

MEMBER, OPERATOR = "bench-member", "bench-operator"
"""Tokens: of one who has permissions in the first organization, and of one who has them everywhere."""

_READ, _CREATE = Permission("bench:machines", "read"), Permission("bench:machines", "create")
_PERMISSIONS = frozenset({_READ, _CREATE})


class Tokens:
    """An authenticator that knows two tokens."""

    def __init__(self) -> None:
        first = labels_of(0, 1)[ORGANIZATION]
        member = AccessList(organizations={first: OrganizationAccess(permissions=_PERMISSIONS)})
        self._known = {
            MEMBER: Principal(subject="member@example.com", type="user", access=member, organizations=(first,)),
            OPERATOR: Principal(
                subject="operator@example.com", type="user", access=AccessList(everywhere=_PERMISSIONS)
            ),
        }

    def access_version(self) -> int:
        """Return the same each time: nothing changes."""
        return 0

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        """Tell whether it is one of the two."""
        return credentials.token in self._known

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return who has this token."""
        principal = self._known.get(credentials.token or "")
        if principal is None:
            raise Unauthenticated("token is not valid")
        return principal


@dataclass(frozen=True, slots=True)
class Service:
    """What the handlers are given."""

    store: Store


async def _list_in_organization(
    service: Service, call: Call[wire.OrganizationPath, ListQuery, Nothing]
) -> Collection[Machine, list[wire.MachineRead]]:
    require_in_organization(call.principal, _READ, call.path.organization)
    labels = {ORGANIZATION: call.path.organization}
    return Collection(store=service.store, kind=Machine, view=wire.VIEW, labels=labels)


async def _list_visible(
    service: Service, call: Call[Nothing, ListQuery, Nothing]
) -> Collection[Machine, list[wire.MachineRead]]:
    principal = call.principal

    def is_visible(machine: Machine) -> bool:
        labels = machine.metadata.labels
        return is_allowed_in_project(principal, _READ, labels[ORGANIZATION], labels[PROJECT])

    visible = None if _READ in principal.access.everywhere else is_visible
    return Collection(store=service.store, kind=Machine, view=wire.VIEW, visible=visible)


async def _read(service: Service, call: Call[wire.MachinePath, Nothing, Nothing]) -> Rendered[wire.MachineRead]:
    path = call.path
    require_in_project(call.principal, _READ, path.organization, path.project)
    labels = (await service.store.get(Machine, path.machine)).metadata.labels
    if (labels[ORGANIZATION], labels[PROJECT]) != (path.organization, path.project):
        raise NotFound("Machine", path.machine)
    return split_etag(await service.store.get_view(Machine, path.machine, wire.VIEW))


async def _create(
    service: Service, call: Call[wire.ProjectPath, Nothing, wire.MachineWrite]
) -> Viewed[wire.MachineRead]:
    context = call.context
    require_in_project(context.principal, _CREATE, call.path.organization, call.path.project)
    machine = wire.new(context.operation, call.path, call.body)
    return Viewed(wire.VIEW, await service.store.create(machine, log=context.audit(MACHINE.plural, machine.name)))


def table() -> Table:
    """Return machines under thirty names, four routes each."""
    nouns = ("machines", *(f"machines-{number}" for number in range(2, ROUTES // 4 + 1)))
    routes = [route for noun in nouns for route in _routes(noun)]
    assert len(routes) == ROUTES
    return Table("bench", title="Bench", description="Machines to be measured.", routes=routes)


def _routes(noun: str) -> Iterator[AnyRoute]:
    organization = "/api/v1/organizations/{organizationID}"
    project = f"{organization}/projects/{{projectID}}/{noun}"
    yield Route(
        method="GET",
        path=f"{organization}/{noun}",
        name=f"list_organization_{noun}",
        summary="List the machines of an organization",
        scope="organization",
        permission=_READ,
        path_type=wire.OrganizationPath,
        query_type=ListQuery,
        response_type=list[wire.MachineRead],
        handler=_list_in_organization,
    )
    yield Route(
        method="POST",
        path=project,
        name=f"create_{noun}",
        summary="Make a machine",
        scope="project",
        permission=_CREATE,
        path_type=wire.ProjectPath,
        body_type=wire.MachineWrite,
        response_type=wire.MachineRead,
        success=201,
        handler=_create,
    )
    yield Route(
        method="GET",
        path=f"{project}/{{machineID}}",
        name=f"read_{noun}",
        summary="Read a machine",
        scope="project",
        permission=_READ,
        path_type=wire.MachinePath,
        response_type=wire.MachineRead,
        errors=(404,),
        handler=_read,
    )
    yield Route(
        method="GET",
        path=f"/api/v2/{noun}",
        name=f"list_{noun}",
        summary="List the machines that the caller may see",
        scope="authenticated",
        query_type=ListQuery,
        response_type=list[wire.MachineRead],
        handler=_list_visible,
    )
