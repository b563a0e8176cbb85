"""Fields that two types have in common, under the same name.

A value is requested, stored, sent on and read back in several types. Their conversions copy the common fields, so a new
field that has the same form everywhere is named in none of them, and none can forget it. Names are compared once for
each pair of types and compiled into an expression: a loop over them takes ten times as long for each object of a list.
"""

from collections.abc import Callable, Collection
from inspect import signature
from typing import Any, TypeVar

import msgspec

SourceT = TypeVar("SourceT", bound=msgspec.Struct)
TargetT = TypeVar("TargetT", bound=msgspec.Struct)
AnyT = TypeVar("AnyT")


def common_fields(
    one: type[msgspec.Struct], other: type[msgspec.Struct], *, without: Collection[str] = ()
) -> Callable[[msgspec.Struct], dict[str, Any]]:
    """Return a function that returns those fields of a struct which both types have.

    `without` names the common fields that are converted in another way.
    """
    common = [name for name in one.__struct_fields__ if name in other.__struct_fields__]
    unknown = set(without).difference(common)
    assert not unknown, f"{one.__name__} and {other.__name__} have no common {', '.join(sorted(unknown))}"
    items = ", ".join(f"{name!r}: struct.{name}" for name in common if name not in without)
    found: Callable[[msgspec.Struct], dict[str, Any]] = eval(f"lambda struct: {{{items}}}")  # noqa: S307  only names
    return found


def conversion(
    source: type[SourceT], target: type[TargetT], **converted: Callable[[Any], Any]
) -> Callable[[SourceT], TargetT]:
    """Return a function that converts a struct to a type all of whose fields the source has as well.

    A field is copied, or converted by the function of its name in `converted`.
    """
    missing = {*target.__struct_fields__, *converted}.difference(source.__struct_fields__)
    assert not missing, f"{source.__name__} has no {', '.join(sorted(missing))}"
    values = {name: f"struct.{name}" for name in target.__struct_fields__}
    values |= {name: f"{name}(struct.{name})" for name in converted}
    arguments = ", ".join(f"{name}={value}" for name, value in values.items())
    found: Callable[[SourceT], TargetT] = eval(  # noqa: S307  only names
        f"lambda struct: _target({arguments})", {**converted, "_target": target}
    )
    return found


def with_common_fields(target: Callable[..., AnyT], source: object, **own: Any) -> AnyT:
    """Return a value of the target with its own fields, and those of the same name of a struct or dataclass.

    It looks at both types each time, so it is for what is converted once, such as a configuration.
    """
    common = signature(target).parameters.keys() & signature(type(source)).parameters.keys()
    return target(**{name: getattr(source, name) for name in common - own.keys()}, **own)
