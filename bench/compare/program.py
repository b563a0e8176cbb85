"""A program under comparison: a checkout, the Python that runs it, and the processes started from it."""

import http.client
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cpu import of_process

__all__ = ["ComparisonError", "Program", "Server", "checkout", "current_program", "serve"]

_ROOT = Path(__file__).parents[2]
_SETTINGS = {"REMUDA_REGION__INSTANT": "true", "REMUDA_SERVER__RATE_LIMIT": "1000000000"}
"""Settings of both programs: simulated clouds take no time, and no request is one too many."""
_START_S = 120.0
_STOP_S = 60.0
_COMMAND_S = 120.0
_POLL_S = 0.002
_LOG_TAIL = 2_000


class ComparisonError(Exception):
    """Raised when a program cannot be compared, with a message for the user."""


@dataclass(frozen=True, slots=True)
class Program:
    """A checkout and the Python that runs it."""

    name: str
    root: Path
    python: str

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs the program as its installed script does."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        module, _, function = project["scripts"]["remuda"].partition(":")
        script = f"import sys; from {module} import {function}; sys.argv[0] = 'remuda'; sys.exit({function}())"
        return [self.python, "-P", "-c", script, *arguments]

    def environment(self, seed: int) -> dict[str, str]:
        """Return the variables that the program is started with; the seed is that of Python's string hashes."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "REMUDA_"))}
        own = {"PYTHONPATH": str(self.root / "src"), "PYTHONHASHSEED": str(seed)}
        return inherited | own | _SETTINGS

    def run(self, *arguments: str, seed: int) -> str:
        """Run a command of the program until it ends; return what it printed."""
        command, environment = self.command(*arguments), self.environment(seed)
        try:
            done = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True, timeout=_COMMAND_S
            )
        except subprocess.CalledProcessError as error:
            raise ComparisonError(f"remuda {' '.join(arguments)} of {self.name} failed: {error.stderr}") from error
        return done.stdout

    def timed(self, *arguments: str, seed: int) -> tuple[float, float]:
        """Run a command of the program; return its wall and its CPU time in seconds."""
        before, began = _children_cpu_s(), time.perf_counter()
        self.run(*arguments, seed=seed)
        return time.perf_counter() - began, _children_cpu_s() - before


@dataclass(frozen=True, slots=True)
class Server:
    """A running `remuda up`."""

    pid: int
    port: int
    data: Path
    start_wall_s: float
    """How long it took until it was ready."""
    start_cpu_s: float

    def cpu_s(self) -> float:
        """Return the CPU time that the process has used so far, all its threads together."""
        return of_process(self.pid)

    def resident_mib(self) -> float:
        """Return the memory that the process has in RAM."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        (kib,) = (int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return kib / 1024


def current_program() -> Program:
    """Return the program of this checkout, as it is now, changes that are not committed included."""
    return _prepared(Program("current", _ROOT, sys.executable))


@contextmanager
def checkout(revision: str) -> Iterator[Program]:
    """Check a revision out beside this one while the block runs, and have what it depends on installed."""
    commit = _git("rev-parse", "--verify", f"{revision}^{{commit}}").strip()
    with tempfile.TemporaryDirectory(prefix="remuda-compare-") as directory:
        root = Path(directory) / "checkout"
        _git("worktree", "add", "--quiet", "--detach", str(root), commit)
        try:
            yield _prepared(Program(revision, root, _python(root)))
        finally:
            _git("worktree", "remove", "--force", str(root))


@contextmanager
def serve(program: Program, data: Path, *, seed: int) -> Iterator[Server]:
    """Run `remuda up` on a data directory while the block runs."""
    port, log = _free_port(), data.with_suffix(".log")
    command = program.command("up", "--data", str(data), "--listen", f"127.0.0.1:{port}")
    with log.open("ab") as written:
        began = time.perf_counter()
        process = subprocess.Popen(command, env=program.environment(seed), stdout=written, stderr=written)
    try:
        _wait_until_ready(program, process, port, log)
        yield Server(process.pid, port, data, time.perf_counter() - began, of_process(process.pid))
        process.terminate()
        if (code := process.wait(_STOP_S)) != 0:
            raise ComparisonError(f"remuda up of {program.name} ended with exit code {code}:\n{_tail(log)}")
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(program: Program, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    ends = time.perf_counter() + _START_S
    while not _is_ready(port):
        if process.poll() is not None or time.perf_counter() > ends:
            raise ComparisonError(f"remuda up of {program.name} did not become ready:\n{_tail(log)}")
        time.sleep(_POLL_S)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]


def _prepared(program: Program) -> Program:
    """Compile all modules of a program and run it once, so that no turn pays for what only the first one does."""
    compiled = [program.python, "-m", "compileall", "-q", str(program.root / "src")]
    subprocess.run(compiled, env=program.environment(0), check=True, timeout=_COMMAND_S)
    program.run("--help", seed=0)
    return program


def _python(root: Path) -> str:
    """Return a Python with what a checkout depends on: this one, or one that the checkout sets up for itself."""
    lock = "requirements.lock"
    if (root / lock).read_bytes() == (_ROOT / lock).read_bytes():
        return sys.executable
    command = ["make", "--quiet", "-C", str(root), f"PYTHON={sys.executable}", ".venv/ready"]
    _run(command, _plain_environment(), timeout_s=900)
    return str(root / ".venv" / "bin" / "python")


def _plain_environment() -> Mapping[str, str]:
    return {key: value for key, value in os.environ.items() if key not in {"MAKEFLAGS", "VIRTUAL_ENV"}}


def _git(*arguments: str) -> str:
    return _run(["git", "-C", str(_ROOT), *arguments], os.environ, timeout_s=_COMMAND_S)


def _run(command: list[str], environment: Mapping[str, str], *, timeout_s: float) -> str:
    try:
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.CalledProcessError as error:
        raise ComparisonError(f"{' '.join(command)} failed: {error.stderr.strip()}") from error
    return done.stdout


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
