"""Tags: names and values that users attach to their resources, and the selector that finds resources by a tag.

A selector is written ``name=value``, with exactly one equals sign. An empty value is selected with ``name=``.
"""

from collections.abc import Iterable

import msgspec

from remuda.kernel.errors import Invalid


class Tag(msgspec.Struct, frozen=True, gc=False):
    """A name and a value, both chosen by the user."""

    name: str
    value: str


class TagSelector(msgspec.Struct, frozen=True):
    """Selects the resources that have exactly this tag."""

    tag: Tag

    def matches(self, tags: Iterable[Tag]) -> bool:
        """Return whether the selected tag is among these."""
        return self.tag in tags


def parse_tag_selector(text: str) -> TagSelector:
    """Parse a selector of the form ``name=value``."""
    name, separator, value = text.partition("=")
    if not name or not separator or "=" in value:
        raise Invalid(
            "tag",
            "is not a name and a value",
            remedy="write it as name=value, with a name that is not empty and one equals sign",
        )
    return TagSelector(Tag(name, value))
