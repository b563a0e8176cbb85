"""Projects as other services follow them: which there are in all organizations, and which of them are ending."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from remuda.clients.watch import Followed, Told, Watch
from remuda.identity.tenancy.rules import read_project
from remuda.identity.tenancy.schema import ProjectRead
from remuda.quota.ports import Place, ProjectSeen

PROJECTS = Followed("list_all_projects", ProjectRead, read_project)
"""All projects there are."""


async def watch_projects(watch: Watch) -> AsyncGenerator[ProjectSeen]:
    """Yield every project there is, then each that changes; all of them again when changes are no longer known.

    What is gone is not told: a project goes when nothing needs it any more, so there is nobody to tell.
    """
    async with aclosing(watch(PROJECTS)) as news:
        async for each in news:
            if isinstance(each, Told) and each.type != "deleted":
                yield _seen(each.item)


def _seen(project: ProjectRead) -> ProjectSeen:
    about = project.metadata
    return ProjectSeen(place=Place(about.organization_id, about.id), is_marked=about.deletion_time is not None)
