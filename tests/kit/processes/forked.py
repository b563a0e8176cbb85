"""Real processes that start at once: forked from one that has imported everything already.

::

    with start(CODE, "up", "--data", …) as process:
        process.stdout.readline()

What is imported takes most of the time of a start, and is the same each time; all else is as after `python -c CODE
WORDS`: a process of its own, with its own signals, output, exit code and death. Where the import itself is what is
tested, start it with `subprocess`.

`start` asks a server that forks (`python -m tests.kit.processes.forked MODULES`, one for each process that runs tests).
It has a second process beside it, which reports when and how a child ended.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Self

ROOT = Path(__file__).parents[3]
MODULES = ("remuda.cli.commands.up", "remuda.cli.commands.token", "remuda.cli.commands.sim")
"""What nearly all of them need."""
_LONGEST = 1 << 20


class Forked:
    """A process, as `subprocess.Popen` has it."""

    def __init__(self, line: socket.socket, pid: int, stdout: IO[str] | None, stderr: IO[str] | None) -> None:
        self._line = line
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self.returncode: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        for each in (self._line, self.stdout, self.stderr):
            if each is not None:
                each.close()

    def poll(self) -> int | None:
        """Return the exit code, if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends, and return the exit code: if a signal ended it, less than nothing."""
        if self.returncode is None:
            self._line.settimeout(timeout)
            try:
                self.returncode = int(self._line.recv(_LONGEST))
            except (TimeoutError, BlockingIOError) as late:
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0) from late
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait until it ends, and return what it still said."""
        with ThreadPoolExecutor(2) as readers:
            said = [readers.submit(each.read) for each in (self.stdout, self.stderr) if each is not None]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            out, error = [None] * (2 - len(said)) + said
        return "" if out is None else out.result(), "" if error is None else error.result()

    def send_signal(self, how: signal.Signals) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and nobody has told us yet
                os.kill(self.pid, how)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def start(
    code: str,
    *words: str,
    environment: Mapping[str, str] | None = None,
    stdout: int | IO[Any] = subprocess.PIPE,
    stderr: int | IO[Any] = subprocess.PIPE,
) -> Forked:
    """Run code with these words as its arguments; `environment` is added to ours."""
    request = {"code": code, "words": words, "environment": {**os.environ, **(environment or {})}}
    line, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    out, their_out = _piped(stdout)
    error, their_error = _piped(stderr)
    handles = [other.fileno(), their_out, their_error]
    socket.send_fds(_door(), [json.dumps(request).encode()], handles)
    other.close()
    for reader, handle in ((out, their_out), (error, their_error)):
        if reader is not None:
            os.close(handle)
    pid = line.recv(_LONGEST)
    assert pid, "there is nobody who forks: it says on stderr why it ended"
    return Forked(line, int(pid), out, error)


def _piped(where: int | IO[Any]) -> tuple[IO[str] | None, int]:
    """Return what we read, if anything, and where it writes."""
    if where != subprocess.PIPE:
        return None, where if isinstance(where, int) else where.fileno()
    mine, theirs = os.pipe()
    return os.fdopen(mine, encoding="utf-8"), theirs


@cache
def _door() -> socket.socket:
    """Have the process that forks at hand, and return where it hears."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
    command = [sys.executable, "-m", "tests.kit.processes.forked", *MODULES]
    process = subprocess.Popen(command, cwd=ROOT, stdin=theirs.fileno(), start_new_session=True)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _fork_for(door: socket.socket) -> None:
    """Fork whenever somebody asks, until nobody can ask any more."""
    while True:
        request, (line, out, error), *_ = _heard(door)
        if not request:
            return
        if not os.fork():
            door.close()
            _run(json.loads(request), socket.socket(fileno=line), out, error)
        for handle in (line, out, error):
            os.close(handle)
        _reap()


def _heard(door: socket.socket) -> tuple[bytes, list[int], int, Any]:
    request, handles, flags, address = socket.recv_fds(door, _LONGEST, 3)
    return request, handles or [-1, -1, -1], flags, address


def _reap() -> None:
    """Release those that told how it ended."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return


def _run(request: Mapping[str, Any], line: socket.socket, out: int, error: int) -> None:
    """Be the process that was asked for; and have one at its side that tells who it is, and how it ended."""
    pid = os.fork()
    if pid:
        os.close(out)
        os.close(error)
        line.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    line.close()
    for handle, place in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (error, 2)):
        os.dup2(handle, place)
        os.close(handle)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where we run in the background, it is ignored
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["-c", *request["words"]]
    exec(request["code"], {"__name__": "__main__"})
    sys.exit()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        import_module(name)
    gc.freeze()  # nobody has to copy what all have in common
    _fork_for(socket.socket(fileno=os.dup(0)))
