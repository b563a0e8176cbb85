"""Bases of the schemas that clients send and read: structs, parameters of path and query, ids.

Apart from the route table, so that a program that only reads schemas, such as the CLI, starts quickly.
"""

from datetime import datetime
from typing import Annotated

import msgspec

Id = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
        extra_json_schema={"format": "uuid"},
    ),
]
"""An id in a path or query: any UUID, so that an invalid one is rejected before authentication."""

Uuid = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uuid"})]
"""An id in a response that is always a UUID, which is therefore not validated when it is read."""

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its time zone, as in RFC 3339."""


ENCODED_TWICE = "A slash in it has to be percent-encoded twice, as %252F: a proxy may decode it once."
"""Description of a path parameter that may contain a slash."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of request and response structs. Unknown fields are ignored."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The base of path and query types: a field's name, or its `rename`, is the parameter's."""


class Nothing(Parameters, frozen=True):
    """No parameters, or no body."""


NOTHING = Nothing()
"""The only instance."""


class PageQuery(Parameters, frozen=True, rename={"continue_": "continue"}):
    """Query of a paged list; a subclass adds filters."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000, description="How many items to return at most.")] | None = None
    continue_: Annotated[str, msgspec.Meta(description="Where the last page ended: its X-Continue.")] | None = None


class ListQuery(PageQuery, frozen=True):
    """Query of a list of stored objects, which can also be watched."""

    watch: Annotated[bool, msgspec.Meta(description="Stream changes as server-sent events.")] = False


ByName = Annotated[str, msgspec.Meta(max_length=255, description="Only those with exactly this name.")]
"""Filter of a list by the name in the metadata. The request pipeline applies it."""


class NameQuery(Parameters, frozen=True):
    """Query of a list that is neither paged nor watched."""

    name: ByName | None = None


class NamedListQuery(ListQuery, frozen=True):
    """Query of a list of stored objects with names."""

    name: ByName | None = None
