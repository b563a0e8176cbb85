"""Fields that two struct types have in common, under the same name.

A value is requested, stored, sent on and read back in several types. Their conversions copy the common fields, so a new
field that has the same form everywhere is named in none of them, and none can forget it.
"""

from collections.abc import Collection
from typing import Any

import msgspec


def common_fields(
    one: type[msgspec.Struct], other: type[msgspec.Struct], *, without: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the common fields of two types, without those that are converted in another way.

    Call it once for each pair of types, and `fields_of` for each value.
    """
    common = [name for name in one.__struct_fields__ if name in other.__struct_fields__]
    unknown = set(without).difference(common)
    assert not unknown, f"{one.__name__} and {other.__name__} have no common {', '.join(sorted(unknown))}"
    return tuple(name for name in common if name not in without)


def fields_of(struct: msgspec.Struct, names: tuple[str, ...]) -> dict[str, Any]:
    """Return some fields of a struct."""
    return {name: getattr(struct, name) for name in names}
