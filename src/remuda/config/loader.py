"""Loading of the configuration: the file, overridden by the environment, overridden by the command line.

In a variable, `REMUDA_` and a double underscore stand for the table: `REMUDA_IDENTITY__ISSUER`. An unknown one is
rejected as a misspelling, except those that Kubernetes sets in every container for a service with our name
(`REMUDA_PORT`, a URL), and those of our tests. A later source replaces lists completely; tables whose keys the operator
chooses are merged by key.
"""

import dataclasses
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from remuda.config.fields import Section, Setting
from remuda.config.schema import SETTINGS, Configuration
from remuda.config.values import InvalidValue, from_text, read
from remuda.datadir import default_directory
from remuda.kernel.errors import Invalid, RemudaError
from remuda.kernel.text import nearest

SHORT: Mapping[str, str] = {"REMUDA_DATA": "server.data", "REMUDA_LISTEN": "server.listen", "REMUDA_CONFIG": ""}
"""Variables with short names; the last one names the file."""

_PREFIX = "REMUDA_"
_ALL = "remuda config show lists all settings."
_OF_TESTS = frozenset(
    f"{_PREFIX}{name}"
    for name in (
        *("SEED", "SEEDS", "KILLS", "FUZZ_EXAMPLES", "FUZZ_SEED"),
        *("OPENSTACK", "OPENSTACK_SEED", "OPENSTACK_SEEDS", "SKIP_OPENSTACK"),
        *("WRITE_ALLOWANCE", "WRITE_FORMATS", "WRITE_GOLDEN"),
    )
)
_SERVICE_LINK = re.compile(
    r"REMUDA_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceValue:
    """A value from one of the sources."""

    setting: Setting
    value: Any
    """As TOML has it, or as text."""
    is_text: bool
    origin: str
    """Source of the value, for users."""
    display_name: str
    """Name of the value in messages."""
    base: Path
    """Directory that relative paths start from."""


@dataclass(frozen=True, slots=True)
class UnknownSetting:
    """A name that is not a setting, with the error message."""

    message: str


_MAX_LINE = 8192  # the time for a key with many dots grows with the square of its length


def parse(text: str, path: Path) -> Mapping[str, Any]:
    if any(len(line) > _MAX_LINE for line in text.splitlines()):
        problem = f"has a line of more than {_MAX_LINE} characters"
        raise Invalid(f"The configuration {path}", problem, remedy="write it on several lines")
    return tomllib.loads(text)


def read_file(path: Path) -> Mapping[str, Any]:
    """Return the content of a file, or raise Invalid."""
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        cause = error.strerror or type(error).__name__
        remedy = "name an existing, readable file"
        raise Invalid(f"The configuration {path}", f"cannot be read ({cause})", remedy=remedy) from None
    except UnicodeDecodeError:
        raise Invalid(f"The configuration {path}", "is not UTF-8 text", remedy="write it as TOML") from None
    except RecursionError:
        raise Invalid(f"The configuration {path}", "is nested too deeply", remedy="use less nesting") from None
    except ValueError as error:  # not TOML, or a number with too many digits
        cause = re.sub(r" \((.*)\)$", r" \1", str(error))
        raise Invalid(f"The configuration {path}", f"is not TOML ({cause})", remedy="correct the file") from None


def from_file(
    content: Mapping[str, Any], path: Path, above: tuple[str, ...] = ()
) -> Iterator[SourceValue | UnknownSetting]:
    for key, value in content.items():
        name = ".".join((*above, key))
        shown = f"{name} in {path}"
        if name in SETTINGS:
            base = path.absolute().parent
            yield SourceValue(
                setting=SETTINGS[name], value=value, is_text=False, origin=str(path), display_name=shown, base=base
            )
        elif name not in _sections():
            yield UnknownSetting(f"{shown} is not a setting: {_meant(name)}")
        elif isinstance(value, dict):
            yield from from_file(value, path, (*above, key))
        else:
            yield UnknownSetting(f"{shown} is not a table: write its settings below [{name}].")


def from_environment(environment: Mapping[str, str]) -> Iterator[SourceValue | UnknownSetting]:
    variables = {setting.variable: setting for setting in SETTINGS.values()}
    variables |= {short: SETTINGS[name] for short, name in SHORT.items() if name}
    for variable, text in sorted(environment.items()):
        if variable in variables:
            yield _text(variables[variable], text, variable)
        elif variable.startswith(_PREFIX) and variable not in SHORT and not _is_of_others(variable, text):
            yield UnknownSetting(
                f"{variable} in the environment is not a setting: {_meant_variable(variable, variables)}"
            )


def from_flags(flags: Mapping[str, str | None]) -> Iterator[SourceValue]:
    """Yield the values of the command line, by setting: the flag is the last part of its name."""
    for name, text in flags.items():
        if text is not None:
            yield _text(SETTINGS[name], text, f"--{name.rpartition('.')[2].replace('_', '-')}")


def _text(setting: Setting, text: str, origin: str) -> SourceValue:
    return SourceValue(setting=setting, value=text, is_text=True, origin=origin, display_name=origin, base=Path())


def _sections() -> list[str]:
    every = (".".join(setting.path[:depth]) for setting in SETTINGS.values() for depth in range(1, len(setting.path)))
    return list(dict.fromkeys(every))


def _meant(name: str) -> str:
    found = nearest(name, [*SETTINGS, *_sections()])
    return f"did you mean {found}?" if found else _ALL


def _is_of_others(variable: str, text: str) -> bool:
    """Tell whether a variable belongs to our tests or is one that Kubernetes sets for a service."""
    is_url = variable.endswith("_PORT") and _SERVICE_URL.match(text) is not None
    return is_url or variable in _OF_TESTS or _SERVICE_LINK.fullmatch(variable) is not None


def _meant_variable(variable: str, variables: Collection[str]) -> str:
    if "__" in variable:
        found = nearest(variable.removeprefix(_PREFIX).replace("__", ".").lower(), SETTINGS)
        return f"did you mean {SETTINGS[found].variable}?" if found else _ALL
    bare = variable.removeprefix(_PREFIX)
    for each in variables:
        if each.endswith(f"__{bare}"):
            return f"did you mean {each}?"
    flat = {each.removeprefix(_PREFIX).replace("__", "_"): each for each in (*variables, *SHORT)}
    alike = nearest(bare, flat)
    return f"did you mean {flat[alike]}?" if alike else _ALL


FILE_NAME = "remuda.toml"
"""Name of the file in the data directory, which is read if no other is named."""
DEFAULT = "default"
"""Origin of a value that is not set."""
_CONFIG = "REMUDA_CONFIG"


class Misconfigured(RemudaError):  # noqa: N818  named like the other errors
    """Raised when the configuration is invalid; correct the settings that it names."""

    code = "misconfigured"

    def __init__(self, problems: tuple[str, ...]) -> None:
        more = len(problems) - 1
        several = f" Further problems: {more}. remuda config check lists them all." if more else ""
        super().__init__(problems[0] + several)
        self.problems = problems
        """A message for each problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfiguration:
    """A valid configuration."""

    configuration: Configuration
    origins: Mapping[str, str] = field(default_factory=dict)
    """By the name of the setting; a missing one has its default."""
    file: Path | None = None


def load(
    environment: Mapping[str, str], *, file: Path | None = None, flags: Mapping[str, str | None] | None = None
) -> LoadedConfiguration:
    """Read the configuration, or raise Misconfigured. `flags` are the values of the command line, by setting."""
    above = [*from_environment(environment), *from_flags(flags or {})]
    data = _values(above)[0].get("server.data") or default_directory(environment)
    named = file or (Path(environment[_CONFIG]) if environment.get(_CONFIG) else None)
    found = named or _in(data)
    below = [] if found is None else from_file(read_file(found), found)
    values, origins, problems = _values([*below, *above])
    if problems:
        raise Misconfigured(problems)
    data = values.setdefault("server.data", data)
    if named is None and found is not None and data.absolute() != found.absolute().parent:
        remedy = "leave it out, or name the file with --config"
        raise Invalid(f"server.data in {found}", "is not the directory of the file", remedy=remedy)
    return LoadedConfiguration(configuration=_built(Configuration, values), origins=origins, file=found)


def _values(given: Iterable[SourceValue | UnknownSetting]) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Return values and origins by setting, and a message for each problem."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []
    for each in given:
        if isinstance(each, UnknownSetting):
            problems.append(each.message)
            continue
        name = each.setting.name
        try:
            value = _value(each)
        except InvalidValue as wrong:
            end = "" if wrong.problem.endswith("?") else "."
            problems.append(f"{_subject(each, wrong)} {wrong.problem}{end}")
            continue
        if isinstance(value, Mapping):
            value = {**values.get(name, each.setting.default), **value}
        values[name], origins[name] = value, each.origin
    return values, origins, tuple(problems)


def _value(given: SourceValue) -> Any:
    setting = given.setting
    raw = from_text(setting.type, given.value) if given.is_text else given.value
    return read(setting.type, raw, setting.about, base=given.base)


def _subject(given: SourceValue, wrong: InvalidValue) -> str:
    name = given.setting.name
    return (
        given.display_name.replace(name, name + wrong.inside, 1)
        if name in given.display_name
        else given.display_name + wrong.inside
    )


def _in(data: Path) -> Path | None:
    found = data / FILE_NAME
    try:
        return found if found.exists() else None
    except OSError as error:
        cause = error.strerror or str(error)
        remedy = "run this as the directory's owner, or name another one"
        raise Invalid("--data", f"{data} cannot be read ({cause})", remedy=remedy) from None


def _built(section: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    kinds = get_type_hints(section)
    parts = {}
    for each in dataclasses.fields(section):
        name, kind = prefix + each.name, kinds[each.name]
        if isinstance(kind, type) and issubclass(kind, Section):
            parts[each.name] = _built(kind, values, f"{name}.")
        elif name in values:
            parts[each.name] = values[name]
    return section(**parts)
