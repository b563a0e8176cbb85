"""Projects as other services watch them, where identity's store is this process's own."""

from collections.abc import AsyncIterator

from remuda.identity.kinds.tenancy import Project
from remuda.kernel.errors import Gone
from remuda.region.ports import Place, ProjectSeen
from remuda.resources.labels import organization_of
from remuda.store.contract import Change, Store

__all__ = ["watch_projects"]

_PAGE = 500


async def watch_projects(store: Store) -> AsyncIterator[ProjectSeen]:
    """Yield every project there is, then each that changes; all of them again when changes are no longer known."""
    while True:
        first = await store.list(Project, limit=_PAGE)
        page = first
        while True:
            for project in page.items:
                yield _seen(project)
            if page.next is None:
                break
            page = await store.list(Project, limit=_PAGE, after=page.next)
        try:
            async for event in store.watch(Project, since=first.version):
                if isinstance(event, Change) and event.type != "deleted":
                    yield _seen(event.resource)
        except Gone:
            continue


def _seen(project: Project) -> ProjectSeen:
    return ProjectSeen(place=Place(organization_of(project), project.name), is_marked=project.is_marked)
