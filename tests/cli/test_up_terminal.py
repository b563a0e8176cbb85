"""What `remuda up` writes to a terminal."""

import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.kit.processes.program import REMUDA

LAST = "The README shows the first steps."
READY = re.compile(r"^Remuda is ready at (\S+) \(data in ", re.MULTILINE)


class Terminal:
    """A terminal with `remuda up` in it."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process, self._screen, self.text = process, screen, ""

    def until(self, said: str) -> str:
        """Read until it has said something; return all that it has said."""
        while said not in self.text and self._read():
            pass
        assert said in self.text, self.text
        return self.text

    def rest(self) -> str:
        """Read until it has ended; return all that it has said."""
        while self._read():
            pass
        return self.text

    def _read(self) -> bool:
        assert select.select([self._screen], [], [], 60)[0], f"it says nothing more: {self.text}"
        try:
            read = os.read(self._screen, 65536)
        except OSError:  # the last process that had the terminal open has ended
            return False
        self.text += read.decode().replace("\r\n", "\n")
        return bool(read)


@contextmanager
def terminal(data: Path, *options: str) -> Iterator[Terminal]:
    screen, side = pty.openpty()
    command = [*REMUDA, "up", "--data", str(data), "--listen", "127.0.0.1:0", *options]
    environment = dict(os.environ, REMUDA_METRICS__LISTEN="127.0.0.1:0")
    with subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=environment) as process:
        os.close(side)
        try:
            yield Terminal(process, screen)
        finally:
            process.kill()
            os.close(screen)


def test_a_terminal_shows_the_first_login_last_and_a_log_as_text(tmp_path: Path) -> None:
    with terminal(tmp_path) as one:
        text = one.until(LAST)
        assert text.index("Remuda is ready at") < text.index("This is the first start.")
        (url,) = READY.findall(text)
        assert httpx2.get(f"{url}/nope").status_code == 404
        one.process.send_signal(signal.SIGINT)
        text = one.rest()
    assert one.process.returncode == 0
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d info    condition controller=", text, re.MULTILINE)
    assert [line for line in text.splitlines() if line.startswith("{")] == []
    assert "/nope" not in text


def test_a_terminal_shows_the_requests_if_they_are_wanted_and_json_if_that_is(tmp_path: Path) -> None:
    with terminal(tmp_path, "--log-requests") as one:
        (url,) = READY.findall(one.until(LAST))
        httpx2.get(f"{url}/nope")
        assert "info    request method=GET path=/nope status=404" in one.until("path=/nope")
    with terminal(tmp_path, "--log", "json", "--log-level", "info") as one:
        (url,) = READY.findall(one.until("Stop it with Ctrl-C."))
        httpx2.get(f"{url}/nope")
        assert '"path":"/nope"' in one.until("/nope")


def test_a_first_start_that_is_stopped_early_still_shows_the_password(tmp_path: Path) -> None:
    with terminal(tmp_path) as one:
        while not (tmp_path / "credentials.json").exists():
            assert one.process.poll() is None
        one.process.send_signal(signal.SIGINT)
        text = one.rest()
    assert "This is the first start." in text or not _is_finished(tmp_path)


def _is_finished(data: Path) -> bool:
    """Tell whether the first start is over: the next one says nothing about it."""
    with terminal(data) as again:
        return "This is the first start." not in again.until("Stop it with Ctrl-C.") + again_rest(again)


def again_rest(one: Terminal) -> str:
    one.process.send_signal(signal.SIGINT)
    return one.rest()
