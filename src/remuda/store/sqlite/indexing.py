"""Taking in the registry's kinds when a file is opened, and building anew the indexes whose meaning changed."""

from collections.abc import Mapping
from typing import Any

from remuda.store.codec import Codec
from remuda.store.kinds import Kind
from remuda.store.objects import Resource
from remuda.store.readside.index import Names, terms_of
from remuda.store.readside.tables import Tables

_STEP = 500


def admit_kinds(tables: Tables, names: Names, codecs: Mapping[type[Resource], Codec[Any]]) -> None:
    """Number the kinds, and rebuild the entries of those whose indexes or references are declared differently now."""
    with tables.connection:
        for kind in names.admit_kinds():
            _rebuild(tables, names, kind, codecs[kind.type])


def _rebuild(tables: Tables, names: Names, kind: Kind[Any], codec: Codec[Any]) -> None:
    number = names.kind(kind)
    for index in names.indexes_of(number):
        tables.clear_index(index)
    after = ""
    while page := tables.names(number, after=after, limit=_STEP):
        for name in page:
            row = tables.find(number, name)
            assert row is not None, "a name in the objects table has a document"
            terms = terms_of(kind, codec.decode(row.document, name))
            tables.add_entries(name, names.indexed(number, sorted(terms)))
        after = page[-1]
