"""A data directory as a process leaves it that was killed, and a process that runs: made once for all who use one."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.kit.processes.program import running
from tests.kit.processes.terminal import Cloud, Terminal, cloud


@pytest.fixture(scope="session")
def left_once() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with running(data) as one:
            one.stop(signal.SIGKILL)
        yield data


@pytest.fixture
def left(left_once: Path, tmp_path: Path) -> Path:
    """A copy of the directory for one test."""
    return shutil.copytree(left_once, tmp_path / "data")


@pytest.fixture(scope="session")
def stopped_once() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with running(data) as one:
            assert one.stop()[0] == 0
        yield data


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path) -> Path:
    """A copy of a directory that a process left which was asked to end, for one test."""
    return shutil.copytree(stopped_once, tmp_path / "data")


@pytest.fixture(scope="session")
def remuda_up() -> Iterator[Cloud]:
    with TemporaryDirectory() as folder, cloud(Path(folder) / "data") as one:
        yield one


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal of somebody who is not logged in."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Terminal(tmp_path / "config", capsys)


@pytest.fixture
def user(terminal: Terminal, remuda_up: Cloud) -> Terminal:
    """A terminal of somebody who is logged in."""
    terminal("login", "--credentials", str(remuda_up.credentials))
    return terminal
