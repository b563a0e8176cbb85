"""What the suites share that start real services: programs in the user's cache, and a command line that keeps them up.

A plane is one such set of services. Its processes run in its directory, which finds them without asking it.
"""

import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


def cache(name: str) -> Path:
    """Return the directory of the programs of a plane."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "remuda" / name


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file exclusively. The system releases it when we die, so it can never be stale."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def say(name: str, text: str) -> None:
    sys.stderr.write(f"{name}: {text}\n")
    sys.stderr.flush()


def processes_in(directory: Path) -> list[str]:
    """Return the ids of the processes that run in a directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == directory:
                found.append(entry.name)
        except OSError:  # it ended meanwhile
            continue
    return found


def run_command(name: str, command: Callable[[], None], failures: tuple[type[Exception], ...]) -> None:
    """Run a command of a plane until it ends, fails with one sentence, or is stopped by Ctrl-C or SIGTERM."""
    for sign in (signal.SIGINT, signal.SIGTERM):  # a shell's background job begins with SIGINT ignored
        signal.signal(sign, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        say(name, "stopped")
    except failures as failure:
        sys.exit(f"{name}: {failure}")


def keep_up(plane: AbstractContextManager[object], setting: Callable[[], str]) -> None:
    """Start a plane, print the setting with which clients find it, and keep it up."""
    with plane:
        sys.stdout.write(f"{setting()}\n")
        sys.stdout.flush()
        signal.pause()
