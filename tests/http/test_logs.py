import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from remuda.config.log import LogConfig, log_settings
from remuda.http.server.access_log import AccessLine
from remuda.http.server.log import LogSettings, text_line

SCRIPT = """
import logging, structlog, sys
from remuda.http.server.log import LogSettings, log_to
from remuda.kernel.clock import SystemClock

class Out:
    def write(self, line):
        print(line.decode())

log_to(Out(), LogSettings(format=sys.argv[1], level=sys.argv[2]), SystemClock())
structlog.contextvars.bind_contextvars(reconcile_id="7")
structlog.get_logger().info("ours", number=1, odd=object)
logging.getLogger("library").warning("theirs %d", 2)
logging.getLogger("library").info("too quiet")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("went wrong")
"""


def written(form: str, level: str) -> list[str]:
    """Return the lines that a process writes."""
    told = subprocess.run([sys.executable, "-c", SCRIPT, form, level], capture_output=True, text=True, check=True)
    assert told.stderr == ""
    return told.stdout.splitlines()


def test_everybodys_log_is_one_json_object_a_line() -> None:
    ours, theirs, wrong = map(json.loads, written("json", "info"))
    assert (ours["event"], ours["level"], ours["number"], ours["odd"]) == ("ours", "info", 1, "<class 'object'>")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("theirs 2", "warning", "library")
    assert wrong["event"] == "went wrong"
    assert "ZeroDivisionError" in wrong["exception"]
    assert all(line["reconcile_id"] == "7" for line in (ours, theirs, wrong))
    assert all(line["time"].endswith("Z") for line in (ours, theirs, wrong))


def test_a_log_for_a_terminal_is_text_with_the_traceback_below_the_line() -> None:
    ours, theirs, wrong, *traceback = written("text", "info")
    assert ours[19:] == f' info    ours number=1 odd="{object}" reconcile_id=7'
    assert datetime.fromisoformat(ours[:19])
    assert theirs[19:] == " warning theirs 2 logger=library reconcile_id=7"
    assert wrong[19:] == " error   went wrong reconcile_id=7"
    assert traceback[0] == "    Traceback (most recent call last):"
    assert traceback[-1] == "    ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("level", "events"),
    [("debug", 3), ("info", 3), ("warning", 2), ("error", 1)],
)
def test_a_log_has_nothing_below_its_level(level: str, events: int) -> None:
    assert len(written("json", level)) == events


@pytest.mark.parametrize(
    "sent", ["\x1b]0;owned\x07", "\x1b[2J", "\x9b2J", "a\nb", "a\r", "\x7f", "\u202e", "\ud800", "\u2028"]
)
def test_text_of_clients_cannot_control_a_terminal(sent: str) -> None:
    event = {"time": "2026-11-19T21:38:15.5Z", "level": "info", "event": sent, "exception": sent, "path": sent}
    for line in text_line({**event, "exception": sent}).decode().split("\n"):
        assert line.isprintable(), line
    assert text_line({**event, "exception": ""}).count(b"\n") == 0


def test_a_line_of_text_names_its_members() -> None:
    event: dict[str, Any] = {"time": "2026-11-19T21:38:15.5Z", "level": "info", "event": "condition"}
    line = text_line({**event, "none": None, "flag": True, "count": 3, "empty": "", "text": "two words", "list": [1]})
    assert line.decode() == (
        '2026-11-19 21:38:15 info    condition none=null flag=true count=3 empty="" text="two words" list=[1]'
    )


def test_a_value_cannot_look_like_other_members_of_the_line() -> None:
    line = text_line({"event": "request", "path": '/x" status=200 by="admin', "agent": "back\\slash"}).decode()
    assert line.endswith(r'path="/x\" status=200 by=\"admin" agent="back\\slash"')


def test_a_request_is_a_line_of_text_too() -> None:
    line = AccessLine(
        time=datetime(2026, 11, 19, 21, 38, 15, tzinfo=UTC),
        method="GET",
        path="/nope",
        status=404,
        duration_ms=0.25,
        bytes=124,
        trace_id="8577b9a7",
        peer="127.0.0.1",
        error="not_found",
    )
    assert text_line(line).decode() == (
        "2026-11-19 21:38:15 info    request method=GET path=/nope status=404 duration_ms=0.25 bytes=124 "
        "trace_id=8577b9a7 peer=127.0.0.1 error=not_found"
    )


@pytest.mark.parametrize(
    ("section", "is_terminal", "expected"),
    [
        (LogConfig(), True, LogSettings(format="text", has_requests=False)),
        (LogConfig(), False, LogSettings(format="json", has_requests=True)),
        (LogConfig(format="json"), True, LogSettings(format="json", has_requests=True)),
        (LogConfig(format="text"), False, LogSettings(format="text", has_requests=False)),
        (LogConfig(requests=True), True, LogSettings(format="text", has_requests=True)),
        (LogConfig(requests=False), False, LogSettings(format="json", has_requests=False)),
    ],
)
def test_a_terminal_gets_text_without_the_requests_unless_told_otherwise(
    section: LogConfig, *, is_terminal: bool, expected: LogSettings
) -> None:
    assert log_settings(section, is_terminal=is_terminal) == expected


def test_requests_have_level_info() -> None:
    assert LogSettings(level="info").logs_requests
    assert LogSettings(level="debug").logs_requests
    assert not LogSettings(level="warning").logs_requests
    assert not LogSettings(has_requests=False).logs_requests
