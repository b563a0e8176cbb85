"""Options that many commands share, each declared once with its type and help, and checks of typed values."""

from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from remuda.cli.output import Format
from remuda.kernel.clock import parse_duration
from remuda.kernel.errors import Invalid
from remuda.resources.ipv4 import find_address, find_prefix, hinted

if TYPE_CHECKING:
    from remuda.resources.schema import MetadataWrite

_DEFAULT_TIMEOUT_S = 600.0

Output = Annotated[Format, Parameter(name=["--output", "-o"], help="Print the result in this format.")]
Watch = Annotated[
    bool, Parameter(name=["--watch", "-w"], negative=(), show_default=False, help="Print changes until interrupted.")
]
Yes = Annotated[
    bool, Parameter(name=["--yes", "-y"], negative=(), show_default=False, help="Do not ask for confirmation.")
]
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
"""An option without a value."""
Many = Annotated[tuple[str, ...], Parameter(show_default=False)]
"""An option that can be repeated."""
DataOption = Annotated[Path | None, Parameter(help="Use this data directory, as remuda up does.")]
ConfigOption = Annotated[Path | None, Parameter(help="Read the configuration from this TOML file, as remuda up does.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MetadataOptions:
    """Options for the metadata of a resource."""

    description: Annotated[str | None, Parameter(help="Set the description.")] = None
    tag: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Set a tag, as name=value. Repeat it for more tags; existing tags are replaced.", negative=()),
    ] = None

    def metadata(self, name: str, previous: Any = None) -> "MetadataWrite":
        """Return the metadata of a request: the options given, and for an update the rest of the previous metadata."""
        from msgspec import UNSET  # noqa: PLC0415  options are also read for help

        from remuda.resources.schema import MetadataWrite, TagWire  # noqa: PLC0415  same

        description = UNSET if previous is None else previous.description
        tags = () if previous is None else previous.tags
        if self.description is not None:
            description = self.description
        if self.tag is not None:
            tags = tuple(TagWire(name=name, value=value) for name, value in map(_split_tag, self.tag))
        return MetadataWrite(name=name, description=description, tags=tags)


NO_METADATA = MetadataOptions()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NewMetadataOptions(MetadataOptions):
    """Options for the metadata of a new resource."""

    allow_duplicate: Annotated[
        bool,
        Parameter(
            negative=(),
            show_default=False,
            help="Create it although one with this name exists. Commands then need the id.",
        ),
    ] = False


NEW_METADATA = NewMetadataOptions()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WaitOptions:
    """Options for waiting until an operation is complete."""

    wait: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Wait until the operation is complete, and show its progress."),
    ] = False
    timeout: Annotated[
        str | None,
        Parameter(help="With --wait, stop waiting after this time, such as 30s or 1h30m. The default is 10m."),
    ] = None

    def __post_init__(self) -> None:
        """Reject an invalid time before anything is sent."""
        if self.timeout is None:
            return
        if not self.wait:
            raise Invalid("--timeout", "has no effect without --wait", remedy="add --wait")
        if not parse_duration(self.timeout):
            raise Invalid("--timeout", f"{self.timeout} is not a duration", remedy="give one such as 30s, 5m or 1h30m")

    @property
    def limit_s(self) -> float:
        given = None if self.timeout is None else parse_duration(self.timeout)
        return _DEFAULT_TIMEOUT_S if given is None else given.total_seconds()


NO_WAIT = WaitOptions()


def checked_number(option: str, number: int, maximum: int) -> int:
    """Return a number from 1 to the maximum, or raise Invalid."""
    if not 1 <= number <= maximum:
        raise Invalid(option, f"{number} is out of range", remedy=f"give a number from 1 to {maximum}")
    return number


def _split_tag(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Invalid("--tag", f"{text} is not a tag", remedy="give it as name=value")
    return name, value


def read_bytes(path: Path, option: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid(option, f"{path} cannot be read ({cause})", remedy="name a file that exists") from None


def read_text(path: Path, option: str) -> str:
    try:
        return read_bytes(path, option).decode()
    except UnicodeDecodeError:
        raise Invalid(option, f"{path} is not a text file", remedy="name the right file") from None


def checked_prefix(option: str, text: str) -> IPv4Network:
    """Return an IPv4 prefix, or raise Invalid."""
    prefix = find_prefix(text)
    if prefix is None:
        remedy = "give one such as 10.0.0.0/24"
        raise Invalid(option, hinted(f"{text} is not an IPv4 prefix", text), remedy=remedy)
    return prefix


def check_address(option: str, text: str) -> None:
    if find_address(text) is None:
        raise Invalid(option, hinted(f"{text} is not an IPv4 address", text), remedy="give one such as 10.0.0.1")
