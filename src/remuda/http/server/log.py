"""Log of the process: one line for each event, as JSON for programs or as text for a terminal.

Text lines contain no control characters, so that nothing that a client sends can control the terminal.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import structlog

from remuda.http.server.access_log import Sink
from remuda.kernel.clock import Clock

LogFormat = Literal["json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]

LineEncoder = Callable[[Any], bytes]
"""Turns an event, a mapping or a struct, into a line."""

_LEVELS: Mapping[LogLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_WIDTH = max(map(len, _LEVELS))
_FIRST = ("time", "level", "event", "exception")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Format and extent of the log."""

    format: LogFormat = "json"
    level: LogLevel = "info"
    has_requests: bool = True
    """Whether the log has a line for each request, which is of level info."""

    @property
    def encode(self) -> LineEncoder:
        return text_line if self.format == "text" else json_line

    @property
    def logs_requests(self) -> bool:
        return self.has_requests and _LEVELS[self.level] <= logging.INFO


def log_to(sink: Sink, settings: LogSettings, clock: Clock) -> None:
    """Send our log, and that of libraries through Python's logging, to a sink."""
    encode = settings.encode

    def add_time(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["time"] = clock.now()
        return event

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            add_time,
            structlog.processors.format_exc_info,
            lambda _logger, _name, event: encode(event),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=lambda *_: _SinkLogger(sink),
        cache_logger_on_first_use=False,  # a cached one would outlive its sink
    )
    logging.basicConfig(level=max(logging.WARNING, _LEVELS[settings.level]), handlers=[_Forward()], force=True)


class _SinkLogger:
    """The logger of structlog: every level writes a line."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def msg(self, line: bytes) -> None:
        self._sink.write(line)

    debug = info = warning = error = critical = exception = msg


class _Forward(logging.Handler):
    """Forwards records of Python's logging to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info or None
        )


def json_line(event: Any) -> bytes:
    """Return an event as one JSON object."""
    return msgspec.json.encode(event, enc_hook=str)


def text_line(event: Any) -> bytes:
    """Return an event as text: its time in UTC, its level, its name, and its other members as name=value."""
    members: Mapping[str, Any] = msgspec.to_builtins(event, enc_hook=str, str_keys=True)
    time = str(members.get("time", "")).replace("T", " ").partition(".")[0].removesuffix("Z")
    level = str(members.get("level", "info"))
    others = (f"{name}={_value(value)}" for name, value in members.items() if name not in _FIRST)
    words = [time, level.ljust(_WIDTH), _printable(str(members.get("event", ""))), *others]
    return "\n".join([" ".join(filter(None, words)), *_traceback(members)]).encode(errors="backslashreplace")


def _traceback(members: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"    {_printable(line)}" for line in str(members.get("exception", "")).splitlines())


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    is_word = text and not any(letter in ' "=\\' for letter in text)
    if is_word or not isinstance(value, str):
        return _printable(text)
    quoted = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{_printable(quoted)}"'


def _printable(text: str) -> str:
    """Return a text whose control characters are escaped."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else repr(letter)[1:-1]
