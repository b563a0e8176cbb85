"""Somebody at a terminal who uses a Remuda: types commands, in this process, and reads what they print."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from remuda.cli import main
from remuda.cli.client.contexts import ContextsFile, LoginContexts
from tests.kit.processes.program import Running, remuda, running
from tests.kit.processes.shell import CHOSEN, visit

SMALL, JAMMY = "sim-small-1", "ubuntu-22.04-amd64"
IMAGES = "127.0.0.2"
"""From where images can be imported, as from nowhere else on the machine."""
MANY = {"servers": 100, "networks": 100, "floatingips": 100, "gpus": 100}


@dataclass(frozen=True)
class Cloud:
    """A Remuda that runs, with space for what all tests make."""

    running: Running
    password: str

    @property
    def credentials(self) -> Path:
        return self.running.data / "credentials.json"


@contextmanager
def cloud(data: Path) -> Iterator[Cloud]:
    environment = {"REMUDA_REGION__INSTANT": "true", "REMUDA_REGION__IMAGE_TARGETS": f'["{IMAGES}/32"]'}
    with running(data, environment=environment) as one:
        (password,) = re.findall(r"^ {4}(\S{23})$", one.said, re.MULTILINE)
        _make_space(one)
        visit(f"{one.url}/identity/oauth2/v2/account", password)
        yield Cloud(one, CHOSEN)


def _make_space(one: Running) -> None:
    token = remuda("token", "issue", "--subject", "admin@remuda.local", "--data", str(one.data)).stdout.strip()
    url = f"{one.url}/identity/api/v1/organizations/{one.credentials['organizationId']}/quotas"
    body = {"quotas": [{"kind": kind, "quantity": number} for kind, number in MANY.items()]}
    assert httpx2.put(url, headers={"Authorization": f"Bearer {token}"}, json=body).is_success


class Terminal:
    """Where somebody types. What is remembered of logins is in a home of its own."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = home / "remuda" / "contexts.json"
        self._capsys = capsys

    def __call__(self, *words: str) -> str:
        """Type a command that works; return what it prints."""
        code, out, error = self.typed(*words)
        assert code == 0, error
        return out

    def refused(self, *words: str, code: int = 1) -> str:
        """Type a command that fails; return the one sentence it says."""
        got, _, error = self.typed(*words)
        lines = error.strip().splitlines()
        assert (got, len(lines)) == (code, 1), error
        return lines[0]

    def typed(self, *words: str) -> tuple[int, str, str]:
        """Type a command; return its exit code and what it printed."""
        self._capsys.readouterr()
        code = main([*words])
        return code, *self._capsys.readouterr()

    def json(self, *words: str) -> Any:
        """Type a command that works; return what it tells programs."""
        return json.loads(self(*words, "-o", "json"))

    @property
    def contexts(self) -> LoginContexts:
        """What is remembered of logins."""
        return ContextsFile(self.file).read()


def make(user: Terminal, name: str, *more: str) -> str:
    """Make an instance on a network of its own, and return what is shown of it."""
    user("network", "create", f"{name}-net", "--region", "sim-north", "--wait")
    return user("instance", "create", name, "--network", f"{name}-net", "--flavor", SMALL, "--image", JAMMY, *more)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(300):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it never came to be so")
