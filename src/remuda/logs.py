"""Where the process's log goes: one JSON object a line, all through one sink, whoever writes.

What is bound to the context, such as the id of the pass or of the operation on whose behalf somebody writes, is in
every line.
"""

import logging
from typing import Any

import msgspec
import structlog

from remuda.http.server.access_log import Sink


def log_to(sink: Sink) -> None:
    """Send what we log, and what libraries log through Python's own logging, to a sink."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", key="time"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_encode),
        ],
        logger_factory=lambda *_: _SinkLogger(sink),
        cache_logger_on_first_use=False,  # a cached one would outlive its sink
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Forward()], force=True)


def _encode(event: dict[str, Any], **_options: Any) -> bytes:
    return msgspec.json.encode(event, enc_hook=str)


class _SinkLogger:
    """What structlog writes with: every level is a line."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def msg(self, line: bytes) -> None:
        self._sink.write(line)

    debug = info = warning = error = critical = exception = msg


class _Forward(logging.Handler):
    """Hands Python's own log records to ours."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info or None
        )
