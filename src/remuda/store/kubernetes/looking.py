"""A look: who refers to whom, by a consistent read that begins now.

Our own index may be behind, so alone it can only say that somebody refers. That nobody does, the API server has to say:
by a list, or, of a kind that fills more than a page, by the version up to which our index must have come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from remuda.kernel.errors import Gone, RemudaError, Unreadable, Unsealable
from remuda.store.codec import Codec
from remuda.store.kinds import Kind
from remuda.store.kubernetes.known import Known
from remuda.store.kubernetes.references import Target
from remuda.store.kubernetes.resource_client import Listed, ResourceApi
from remuda.store.objects import Resource
from remuda.store.readside.reader import Reader

_PAGE = 500
_SLICE = 100
_CATCH_UP_S = 1.0


@dataclass
class Sight:
    """What a look has found, to be read beside the index."""

    referrers: dict[Target, set[Target]] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)
    """The kinds of which not every object could be read, and why: they may refer to anything."""
    is_unanswered: bool = False


class Looking:
    """Looks at kinds of referrers."""

    def __init__(
        self,
        reader: Reader,
        known: Known,
        *,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
    ) -> None:
        self._reader = reader
        self._known = known
        self._apis = apis
        self._codecs = codecs

    async def at(self, kinds: Iterable[Kind[Any]]) -> Sight:
        """Return what objects of these kinds refer to now."""
        sight = Sight()
        for kind in kinds:
            try:
                await self._look(kind, sight)
            except (Unreadable, Unsealable) as error:
                sight.doubtful[kind.qualified] = error.sentence
            except RemudaError as error:
                sight.doubtful[kind.qualified] = error.sentence
                sight.is_unanswered = True
            if self._known.unreadable(kind):
                sight.doubtful[kind.qualified] = "some of them cannot be read"
        for kind_name, cause in sight.doubtful.items():
            structlog.get_logger().warning("references unclear", kind=kind_name, cause=cause)
        return sight

    async def _look(self, kind: Kind[Any], sight: Sight) -> None:
        page = await self._apis[kind.type].list_page(limit=_PAGE)
        if page.metadata.continue_ and await self._has_caught_up(kind, page):
            return
        await self._note(kind, page, sight)
        while page.metadata.continue_:
            page = await self._apis[kind.type].list_page(limit=_PAGE, continue_=page.metadata.continue_)
            await self._note(kind, page, sight)

    async def _has_caught_up(self, kind: Kind[Any], page: Listed) -> bool:
        """Tell whether our index is as new as a page. Of a kind that rests we may only be told so once a minute."""
        try:
            await self._reader.feed(kind).reach(int(page.metadata.resource_version), _CATCH_UP_S)
        except Gone:
            return False
        return True

    async def _note(self, kind: Kind[Any], page: Listed, sight: Sight) -> None:
        for number, item in enumerate(page.items):
            referrer = self._codecs[kind.type].decode_named(item)
            for target in kind.targets(referrer):
                sight.referrers.setdefault(target, set()).add((kind.qualified, referrer.name))
            if number % _SLICE == _SLICE - 1:
                await self._reader.pause()
