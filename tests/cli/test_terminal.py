"""Commands in a real terminal: they ask, show how far something is in one line, and break lines where it ends."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from remuda.cli.output import status_line
from tests.kit.processes.program import REMUDA
from tests.kit.processes.terminal import Terminal, make

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def typed(user: Terminal, *words: str, answer: str = "", columns: int = 80) -> tuple[int, str]:
    """Type a command, and an answer to what it asks; return its exit code and all that the terminal showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "XDG_CONFIG_HOME": str(user.file.parents[1]), "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    command = subprocess.Popen([*REMUDA, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # how Linux says that the other side has closed
    os.close(ours)
    return command.wait(timeout=120), ESCAPES.sub("", shown.decode().replace("\r\n", "\n"))


def test_what_cannot_be_undone_is_asked_about(user: Terminal) -> None:
    make(user, "asked", "--wait")
    code, shown = typed(user, "instance", "delete", "asked", answer="n\n", columns=200)
    assert code == 1
    assert (
        "The instance asked will be deleted with its disk and its addresses. This cannot be undone. Continue? [y/N] "
        in shown
    )
    assert shown.endswith("Nothing was done.\n")
    assert user("instance", "show", "asked", "-o", "name") == "asked\n"
    code, shown = typed(user, "instance", "delete", "asked", answer="\x04")
    assert (code, shown.splitlines()[-1].strip()[-17:]) == (1, "Nothing was done."), "who hangs up has not agreed"
    code, shown = typed(user, "instance", "delete", "asked", "--wait", answer="y\n")
    assert (code, shown.splitlines()[-1].strip()) == (0, "The instance asked was deleted.")
    assert user.refused("instance", "show", "asked")


def test_a_plan_is_broken_into_the_lines_of_the_terminal(user: Terminal) -> None:
    make(user, "narrow", "--wait")
    code, shown = typed(user, "instance", "plan", "narrow", "--flavor", "sim-gpu-8", columns=70)
    assert code == 0
    assert max(len(line) for line in shown.splitlines()) <= 70
    assert "Survives  id " in shown


class Screen(io.StringIO):
    """A terminal that remembers what was written to it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def screened(monkeypatch: pytest.MonkeyPatch, *lines: str, term: str = "xterm") -> str:
    """Return what a terminal gets when these lines are shown."""
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", term)
    with status_line() as update:
        for line in lines:
            update(line)
    return screen.getvalue()


def test_how_far_something_is_stands_in_one_line_of_a_terminal_and_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screened(monkeypatch, "web is pending", "web is \x1b[2Jprovisioned")
    assert shown.split("\r\x1b[2K") == ["", "web is pending …", "web is  [2Jprovisioned …", ""]


@pytest.mark.parametrize(
    ("line", "shown"),
    [("x" * 200, "x" * 79), ("字" * 200, "字" * 39), ("e\u0301" * 79 + "x", "e\u0301" * 79)],
    ids=["narrow", "wide", "combined"],
)
def test_a_line_that_is_replaced_ends_before_the_terminal_does(
    line: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert screened(monkeypatch, line) == f"\r\x1b[2K{shown}\r\x1b[2K"


def test_a_terminal_that_cannot_erase_gets_each_new_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert screened(monkeypatch, "one", "one", "two", term="dumb") == "one\ntwo\n"
