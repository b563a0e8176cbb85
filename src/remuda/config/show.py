"""The effective configuration as TOML: description, value and origin of each setting. Secrets are not shown.

A default that follows from other settings is a comment with its value, so that the text can be used as a file.
"""

import re
from collections.abc import Iterator, Mapping
from functools import reduce
from textwrap import wrap
from typing import Any

from remuda.config.fields import Setting
from remuda.config.loader import DEFAULT, LoadedConfiguration
from remuda.config.reach import public_url
from remuda.config.schema import SETTINGS, Configuration
from remuda.config.values import plain
from remuda.http.server.exposition import DEFAULT_ADDRESS

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_toml(loaded: LoadedConfiguration) -> str:
    return "\n".join(_lines(loaded)) + "\n"


def _lines(loaded: LoadedConfiguration) -> Iterator[str]:
    yield f"# File: {loaded.file or 'none'}. The environment overrides it, and the command line overrides both."
    table, derived = "", _derived(loaded.configuration)
    for setting in SETTINGS.values():
        above = ".".join(setting.path[:-1])
        if above != table:
            table = above
            yield from ("", f"[{table}]")
        value = reduce(getattr, setting.path, loaded.configuration)
        origin = loaded.origins.get(setting.name, DEFAULT)
        yield from (f"# {line}" for line in wrap(_about(setting, origin), _WIDTH, break_on_hyphens=False))
        name = setting.path[-1]
        if origin == DEFAULT and setting.name in derived:
            shown = f"# {name} = {toml_value(derived[setting.name])}"
        else:
            shown = f'# {name} = ""' if value is None else f"{name} = {toml_value(plain(value))}"
        yield f"{shown}  # {origin}"


def _derived(configuration: Configuration) -> Mapping[str, str]:
    """Return the defaults that follow from other settings, by the name of the setting."""
    url = public_url(configuration.server, configuration.server.listen)
    return {"server.public_url": url, "identity.issuer": f"{url}/identity", "metrics.listen": str(DEFAULT_ADDRESS)}


def _about(setting: Setting, origin: str) -> str:
    shown = setting.about.shown
    return f"{setting.about.text} Default: {shown}." if shown and origin == DEFAULT else setting.about.text


def toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = [f"{_key(name)} = {toml_value(each)}" for name, each in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, int):
        return str(value).lower()  # also for true and false
    return f'"{"".join(map(_escaped, str(value)))}"'


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_value(name)


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
