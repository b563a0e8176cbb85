"""When each part of what is stored was changed last, so that what was made of it can be kept until then.

Time is counted in ticks, one for each time that changes become visible. Of kinds that are only ever asked about as a
whole no more than the last tick is kept. Of others there is also the last tick of whatever was changed lately; what is
not among that was not changed after the `floor`, and nobody can say more. If very much changes at once, all of its kind
did. So memory and time are bounded, and the answer is never too early: it can be too late, which costs whoever asks one
more read.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from remuda.store.kinds import Kind
from remuda.store.objects import Resource
from remuda.store.parts import NAME_INDEX, Part, Term, field_index, label_index
from remuda.store.readside.change_feed import Landed

_LATELY = 4_096
"""Terms of one kind whose last change is remembered."""
_AT_ONCE = 1_000
"""Terms that are looked at when changes become visible: nobody else is served meanwhile."""


class _Lately:
    """The terms of one kind that were changed last."""

    __slots__ = ("_at", "_floor")

    def __init__(self, floor: int) -> None:
        self._floor = floor
        self._at: OrderedDict[Term, int] = OrderedDict()

    def note(self, terms: Iterable[Term], tick: int) -> None:
        for term in terms:
            self._at[term] = tick
            self._at.move_to_end(term)
        while len(self._at) > _LATELY:
            _, self._floor = self._at.popitem(last=False)

    def at(self, term: Term) -> int:
        return self._at.get(term, self._floor)


class Stamps:
    """The last changes of all kinds."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self._tick = 0
        self._whole: dict[type[Resource], int] = {kind.type: 0 for kind in kinds}
        self._lately: dict[type[Resource], _Lately] = {}

    def change(self, kind: Kind[Any], changes: Sequence[Landed[Any]]) -> None:
        """Note changes of one kind that become visible now."""
        self._tick += 1
        self._whole[kind.type] = self._tick
        lately = self._lately.get(kind.type)
        if lately is None:
            return
        terms = list(islice((term for change in changes for term in _moved(kind, change)), _AT_ONCE + 1))
        if len(terms) > _AT_ONCE:
            del self._lately[kind.type]
        else:
            lately.note(terms, self._tick)

    def change_all(self, kind: Kind[Any]) -> None:
        """Note that anything of a kind may have changed."""
        self._tick += 1
        self._whole[kind.type] = self._tick
        self._lately.pop(kind.type, None)

    def last(self, parts: Iterable[Part] | None = None) -> int:
        """Return the tick of the last change of any of these parts, or of anything at all."""
        return self._tick if parts is None else max(map(self._at, parts), default=0)

    def _at(self, part: Part) -> int:
        if not isinstance(part, tuple):
            return self._whole[part]
        kind, term = part
        lately = self._lately.get(kind)
        if lately is None:
            lately = self._lately[kind] = _Lately(self._whole[kind])
        return lately.at(term)


def _moved(kind: Kind[Any], change: Landed[Any]) -> Iterator[Term]:
    """Yield what an object is found under, or was."""
    yield from _terms(kind, change.event.resource)
    if change.before is not None:
        yield from _terms(kind, change.before)


def _terms(kind: Kind[Any], resource: Resource) -> Iterator[Term]:
    yield NAME_INDEX, resource.name
    for key, value in resource.metadata.labels.items():
        yield label_index(key), value
    for index in kind.indexes:
        name = field_index(index.name)
        for value in index.values(resource):
            yield name, value
