"""The configuration in effect, and where each of its values comes from.

Lists are replaced whole by whoever comes later. Tables with names of the operator's choice, such as the system
accounts, are added to those that are there: an entry of the same name replaces that entry.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from remuda.config.about import Section
from remuda.config.loader import Given, Unknown, from_environment, from_file, from_flags, read_file
from remuda.config.schema import Configuration
from remuda.config.values import Wrong, from_text, read
from remuda.kernel.errors import Invalid, RemudaError

FILE_NAME = "remuda.toml"
"""The file's name in the data directory, where it is read if no other is named."""
DEFAULT = "default"
"""The origin of what nobody set."""
_CONFIG = "REMUDA_CONFIG"


class Misconfigured(RemudaError):  # noqa: N818  named like the rest of the tree
    """Raised when the configuration cannot be used; correct what it names."""

    code = "misconfigured"

    def __init__(self, problems: tuple[str, ...]) -> None:
        more = len(problems) - 1
        several = f" There is more ({more}): remuda config check names it all." if more else ""
        super().__init__(problems[0] + several)
        self.problems = problems
        """A sentence for each thing that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A configuration that can be used."""

    configuration: Configuration
    origins: Mapping[str, str] = field(default_factory=dict)
    """By the name of the setting; what is not there is a default."""
    file: Path | None = None
    """The file that was read."""


def load(
    environment: Mapping[str, str], *, file: Path | None = None, flags: Mapping[str, str | None] | None = None
) -> Loaded:
    """Read the configuration, or raise Misconfigured. `flags` are what the command line gives, by setting."""
    above = [*from_environment(environment), *from_flags(flags or {})]
    data = _values(above)[0].get("server.data") or _default_data(environment)
    named = file or (Path(environment[_CONFIG]) if environment.get(_CONFIG) else None)
    found = named or _in(data)
    below = [] if found is None else from_file(read_file(found), found)
    values, origins, problems = _values([*below, *above])
    if problems:
        raise Misconfigured(problems)
    data = values.setdefault("server.data", data)
    if named is None and found is not None and data.absolute() != found.absolute().parent:
        remedy = "leave it out, or name the file with --config"
        raise Invalid(f"server.data in {found}", "is another directory than the file's own", remedy=remedy)
    return Loaded(configuration=_built(Configuration, values), origins=origins, file=found)


def _values(given: Iterable[Given | Unknown]) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Return values and origins by setting, and a sentence for each problem."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []
    for each in given:
        if isinstance(each, Unknown):
            problems.append(each.sentence)
            continue
        name = each.setting.name
        try:
            value = _value(each)
        except Wrong as wrong:
            end = "" if wrong.problem.endswith("?") else "."
            problems.append(f"{_place(each, wrong)} {wrong.problem}{end}")
            continue
        if isinstance(value, Mapping):
            value = {**values.get(name, each.setting.default), **value}
        values[name], origins[name] = value, each.origin
    return values, origins, tuple(problems)


def _value(given: Given) -> Any:
    setting = given.setting
    raw = from_text(setting.type, given.value) if given.is_text else given.value
    return read(setting.type, raw, setting.about, base=given.base)


def _place(given: Given, wrong: Wrong) -> str:
    name = given.setting.name
    return given.called.replace(name, name + wrong.inside, 1) if name in given.called else given.called + wrong.inside


def _in(data: Path) -> Path | None:
    found = data / FILE_NAME
    try:
        return found if found.exists() else None
    except OSError as error:
        cause = error.strerror or str(error)
        remedy = "run this as the directory's owner, or name another one"
        raise Invalid("--data", f"{data} cannot be looked into ({cause})", remedy=remedy) from None


def _default_data(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_DATA_HOME")
    if base:
        return Path(base) / "remuda"
    try:
        return Path.home() / ".local" / "share" / "remuda"
    except RuntimeError:
        raise Invalid("--data", "is not given, and there is no home directory", remedy="name a directory") from None


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
