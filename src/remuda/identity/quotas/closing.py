"""A project goes only when nothing is held in it and nothing can be any more.

To see that no row names it is not enough: one may be taken between that look and the end of the project. So the head
closes it. Whoever takes something in it has to write the head, too: either it comes first, and its intent or row keeps
the project, or it comes second and is told that there is no such project.
"""

from remuda.identity.kinds.quotas import Allocation, Quota
from remuda.identity.quotas.quota_state import closed
from remuda.identity.quotas.writer import Apply, Combiner
from remuda.kernel.errors import Conflict, NotFound, OwnerRefused
from remuda.store.contract import Store


class Closing:
    """Closes projects."""

    def __init__(self, store: Store, heads: Combiner) -> None:
        self._store, self._heads = store, heads

    async def close(self, organization: str, project: str) -> bool:
        """Let nothing be held in a project any more; tell whether that is so, because nothing is. Repeat it at will."""

        async def judge(_: Quota) -> tuple[Apply, None]:
            if (await self._store.list_names(Allocation, index=("living", project), limit=1)).items:
                raise Conflict("Project", project)
            return lambda spec: closed(spec, project), None

        try:
            await self._heads.write(organization, judge, about=project)
        except Conflict:
            return False
        except (NotFound, OwnerRefused):  # there is no head, and none can come: the organization goes
            return True
        return True
