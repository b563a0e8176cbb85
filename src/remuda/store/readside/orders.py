"""Under which of several terms a walk is short.

Entries are counted, no further than the rarest goes. Where none is rare that takes as long as reading a page, so what
was found then holds for a while: a walk in another order finds the same, only not as soon.
"""

from collections.abc import Sequence

from remuda.store.readside.index import IndexedTerm
from remuda.store.readside.tables import Tables

_FEW = 10
"""A term with fewer entries than this is as rare as need be."""
_COUNTS = (200, 1_000, 5_000)
"""How far index entries are counted, in turn: beyond the last, any term is as good as another."""
_RARE = 1_000
"""Counting no further than this is done every time."""
_USES = 100
"""So often an order is used before entries are counted again."""
_MOST = 1_000

Terms = tuple[IndexedTerm, ...]


class Orders:
    """Orders terms, and remembers the orders that took long to find."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[Terms, tuple[Terms, int]] = {}

    def rarest_first(self, terms: Sequence[IndexedTerm]) -> Sequence[IndexedTerm]:
        """Order terms so that a walk under the first is short."""
        if len(terms) <= 1:
            return terms
        asked = tuple(terms)
        order, uses = self._known.get(asked, (asked, 0))
        if not uses:
            return self._found(asked)
        self._known[asked] = order, uses - 1
        return order

    def _found(self, terms: Terms) -> Terms:
        self._known.pop(terms, None)
        order, least = self._counted(terms)
        if least >= _RARE:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[terms] = order, _USES
        return order

    def _counted(self, terms: Terms) -> tuple[Terms, int]:
        """Return terms in order, and how many entries the rarest has at least."""
        for term in terms:
            count = self._tables.count_under(term, limit=_FEW)
            if count < _FEW:
                return (term, *(other for other in terms if other is not term)), count
        for limit in _COUNTS:
            counts = {term: self._tables.count_under(term, limit=limit) for term in terms}
            if min(counts.values()) < limit:
                return tuple(sorted(terms, key=counts.__getitem__)), min(counts.values())
        return terms, _COUNTS[-1]
