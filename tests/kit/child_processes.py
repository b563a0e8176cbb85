"""Child processes that cannot outlive us, and ports that stay theirs.

Linux can send a child a signal when its parent dies, which also covers a parent that was killed. For Linux the parent
is the *thread* that forked, and a test may well restart a component from a short-lived worker thread. Hence one
thread, which lives as long as the interpreter, starts all of our children.
"""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PR_SET_PDEATHSIG = 1
PORTS = range(20000, 32000)  # below Linux's ephemeral range, which begins at 32768
LIBC = ctypes.CDLL(None)  # loaded before any fork: a forked child should do as little as it can
STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="child-starter")


@dataclass(frozen=True)
class Process:
    """One running child."""

    child: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls, command: Sequence[str], directory: Path, log: Path, environment: Mapping[str, str] | None = None
    ) -> Self:
        return cls(STARTER.submit(_spawn, command, directory, log, environment).result())

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def alive(self) -> bool:
        return self.child.poll() is None

    def end(self, sign: signal.Signals, timeout_s: float) -> None:
        """Send the signal and wait for the end; kill a child that takes too long."""
        self.child.send_signal(sign)
        try:
            self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"{self.child.args!r} ignored {sign.name} for {timeout_s} s and was killed\n")
            self.child.kill()
            self.child.wait()


def _spawn(
    command: Sequence[str], directory: Path, log: Path, environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we could ask
            os._exit(1)

    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C in a terminal is for us; we then stop the children in order
            preexec_fn=die_with_parent,  # noqa: PLW1509 - there is no other hook, and it takes no locks
        )


def free_ports(count: int) -> list[int]:
    """Find ports that nobody listens on now.

    Outgoing connections take theirs from the ephemeral range, so none of them can take the port of a component that
    is down for a moment.
    """
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free ports on 127.0.0.1")
