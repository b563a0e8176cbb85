"""Options that many commands have: each is explained once, with its type.

Files that people name in options.

Addresses as they are typed: what is none is refused before anybody is asked.

The words of the API are those that its clients know, and name no option.
"""

from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from remuda.cli.output import Format
from remuda.config.durations import parse_duration
from remuda.kernel.errors import Invalid
from remuda.resources.ipv4 import find_address, find_prefix, hinted

_LONGEST_S = 600.0

Output = Annotated[Format, Parameter(name=["--output", "-o"], help="How to show it.")]
"""The option for it."""
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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Whether to wait, and for how long."""

    wait: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Wait until it is done, and show meanwhile how far it is."),
    ] = False
    timeout: Annotated[
        str | None,
        Parameter(help="With --wait: stop waiting after this time, such as 30s or 1h30m. It is 10m unless said."),
    ] = None

    def __post_init__(self) -> None:
        """Refuse a time that is none before anything is done."""
        if self.timeout is None:
            return
        if not self.wait:
            raise Invalid("--timeout", "is of no use without --wait", remedy="say both")
        if not parse_duration(self.timeout):
            raise Invalid("--timeout", f"{self.timeout} is no time", remedy="give it as 30s, 5m or 1h30m")

    @property
    def limit_s(self) -> float:
        """For how many seconds to wait."""
        given = None if self.timeout is None else parse_duration(self.timeout)
        return _LONGEST_S if given is None else given.total_seconds()


AT_ONCE = Waiting()
"""Nobody waits."""


def within(option: str, number: int, most: int) -> int:
    """Return a number that the API takes, or say in the words of the command that it is none."""
    if not 1 <= number <= most:
        raise Invalid(option, f"{number} is not possible", remedy=f"give a number from 1 to {most}")
    return number


def _tag(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Invalid("--tag", f"{text} is no tag", remedy="give it as name=value")
    return {"name": name, "value": value}


def bytes_of(path: Path, option: str) -> bytes:
    """Return what is in a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid(option, f"{path} cannot be read ({cause})", remedy="name a file that is there") from None


def text_of(path: Path, option: str) -> str:
    """Return the text in a file."""
    try:
        return bytes_of(path, option).decode()
    except UnicodeDecodeError:
        raise Invalid(option, f"{path} is no text", remedy="name the right file") from None


def checked_prefix(option: str, text: str) -> IPv4Network:
    """Return a prefix, or refuse what is none."""
    prefix = find_prefix(text)
    if prefix is None:
        raise Invalid(option, hinted(f"{text} is no IPv4 prefix", text), remedy="write one such as 10.0.0.0/24")
    return prefix


def check_address(option: str, text: str) -> None:
    """Refuse what is no address."""
    if find_address(text) is None:
        raise Invalid(option, hinted(f"{text} is no IPv4 address", text), remedy="write one such as 10.0.0.1")
