"""Settings of the log, and what they are by default: text for a terminal, JSON for programs."""

from dataclasses import dataclass
from typing import Annotated, cast

from remuda.config.fields import Description, Problem, Section
from remuda.http.server.log import LogFormat, LogLevel, LogSettings

_FORMATS = ("json", "text")
_LEVELS = ("debug", "info", "warning", "error")


def check_log_format(text: str) -> Problem:
    return None if text in {"", *_FORMATS} else "is not known: write text or json, or leave it out"


def check_log_level(text: str) -> Problem:
    return None if text in _LEVELS else f"is not known: write one of {', '.join(_LEVELS)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig(Section):
    """Settings of the log, which is written to stderr."""

    format: Annotated[
        str, Description("`text` or `json`.", check_log_format, "text if stderr is a terminal, otherwise json")
    ] = ""
    level: Annotated[
        str, Description("Lowest level that is logged: `debug`, `info`, `warning` or `error`.", check_log_level)
    ] = "info"
    requests: Annotated[
        bool | None,
        Description("Whether each request is logged, with level info.", shown="true for json, false for text"),
    ] = None


def log_settings(section: LogConfig, *, is_terminal: bool) -> LogSettings:
    """Return the settings of a log that is written to a terminal or to somewhere else."""
    chosen = cast("LogFormat", section.format or ("text" if is_terminal else "json"))
    has_requests = chosen == "json" if section.requests is None else section.requests
    return LogSettings(format=chosen, level=cast("LogLevel", section.level), has_requests=has_requests)
