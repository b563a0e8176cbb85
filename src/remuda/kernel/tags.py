"""Tags: names and values that users put on their resources, and the selector that finds resources by one.

A selector is written ``name=value``. The first equals sign divides, so a value may hold more of them; a tag whose value
is empty is selected by ``name=``.
"""

from collections.abc import Iterable

import msgspec

from remuda.kernel.errors import Invalid


class Tag(msgspec.Struct, frozen=True, gc=False):
    """A name with a value, both chosen by the user."""

    name: str
    value: str


class TagSelector(msgspec.Struct, frozen=True):
    """Selects what carries exactly this tag."""

    tag: Tag

    def matches(self, tags: Iterable[Tag]) -> bool:
        """Tell whether the wanted tag is among these."""
        return self.tag in tags


def parse_tag_selector(text: str) -> TagSelector:
    """Read a selector from ``name=value``."""
    name, divider, value = text.partition("=")
    if not name or not divider:
        raise Invalid(
            "tag", "is not a name and a value", remedy="write it as name=value, with a name that is not empty"
        )
    return TagSelector(Tag(name, value))
