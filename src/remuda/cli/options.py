"""Options that many commands have: each is explained once, with its type."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from remuda.kernel.errors import Invalid

__all__ = ["ABOUT", "About", "Flag", "Format", "Many", "Output", "Wait", "Watch", "Yes"]

Format = Literal["table", "json", "yaml", "name"]
"""How something is shown."""
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="How to show it.")]
"""The option for it."""
Wait = Annotated[
    bool, Parameter(negative=(), show_default=False, help="Wait until it is done, and show meanwhile how far it is.")
]
"""Whether to wait."""
Watch = Annotated[
    bool, Parameter(name=["--watch", "-w"], negative=(), show_default=False, help="Go on, and show each change.")
]
"""Whether to go on."""
Yes = Annotated[
    bool, Parameter(name=["--yes", "-y"], negative=(), show_default=False, help="Do not ask whether that is meant.")
]
"""Whether somebody has agreed already."""

Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
"""Something that is so only if it is said."""
Many = Annotated[tuple[str, ...], Parameter(show_default=False)]
"""Something that can be said again and again, or not at all."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class About:
    """What is said about something, which changes nothing of what it does."""

    description: Annotated[str | None, Parameter(help="What to say about it.")] = None
    tag: Annotated[
        tuple[str, ...] | None,
        Parameter(help="A tag, as name=value; say it again for another one. Those it has are replaced.", negative=()),
    ] = None

    def metadata(self, before: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata to send of something that is called as `before` says, and described as that or anew."""
        sent: dict[str, Any] = {key: before[key] for key in ("name", "description", "tags") if key in before}
        if self.description is not None:
            sent["description"] = self.description
        if self.tag is not None:
            sent["tags"] = [_tag(text) for text in self.tag]
        return sent


ABOUT = About()
"""Nothing is said."""


def _tag(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Invalid("--tag", f"{text} is no tag", remedy="give it as name=value")
    return {"name": name, "value": value}
