"""What a setting says about itself, written beside its type: `Annotated[int, About("…")]`.

The page of settings, `remuda config show` and the sentences that refuse a value are all made from it.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

Refusal = str | None
"""Why a value is no good, with the remedy behind a colon; None if it is good."""


@dataclass(frozen=True, slots=True)
class About:
    """A setting's description, and what its value must be beyond its type."""

    text: str
    check: Callable[[Any], Refusal] | None = None
    """Asked of the value; of a list, of each item."""
    shown: str = ""
    """What to print as the default where the default depends on something."""
    needs_one: bool = False
    """A list must not be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One thing that can be set."""

    path: tuple[str, ...]
    type: Any
    about: About
    default: Any

    @property
    def name(self) -> str:
        """As files and sentences have it: `identity.issuer`."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """As the environment has it: `REMUDA_IDENTITY__ISSUER`."""
        return "REMUDA_" + "__".join(self.path).upper()


class Section:
    """The base of what holds settings and is none itself: a table of the file."""

    __slots__ = ()


def settings_of(section: Any, above: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Yield every setting of a section and of those in it, in the order they are written."""
    annotations = get_type_hints(section, include_extras=True)
    for field in dataclasses.fields(section):
        path, annotation = (*above, field.name), annotations[field.name]
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from settings_of(annotation, path)
            continue
        (about,) = annotation.__metadata__
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        yield Setting(path=path, type=annotation.__origin__, about=about, default=default)
