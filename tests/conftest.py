"""Hooks of every test run: coroutines in their environments, the longest files first, in memory, and without our log.

The log would hide what failed, so it is not written; `pytest -s` shows it. Temporary files are in memory, which is
faster than a disk: what a power cut leaves is for the simulated disk to show, and a process that is killed loses
nothing of either.
"""

import gc
import inspect
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.kit.distribution import FileOrSlice
from tests.kit.durations import DurationReport, Durations, longest_first
from tests.kit.environment import provided_by, run_coroutine
from tests.kit.simulation.runner import simulate

ROOT = Path(__file__).parents[1]
DURATIONS = Path(__file__).with_name("durations.json")
THOROUGH = (
    "tests/contract/test_broken.py",
    "tests/durability/test_disk_trouble.py",
    "tests/durability/test_power_cut.py",
    "tests/identity/test_ledger_crashes.py",
    "tests/identity/test_login_crashes.py",
    "tests/identity/test_users_sagas.py",
    "tests/region/test_authorities_sagas.py",
    "tests/region/test_filestorage_crashes.py",
    "tests/region/test_filestorage_sagas.py",
    "tests/region/test_loadbalancers_sagas.py",
    "tests/region/test_networks_crashes.py",
    "tests/region/test_networks_sagas.py",
    "tests/region/test_servers_crashes.py",
    "tests/sim/test_region_points.py",
    "tests/sim/test_compute_points.py",
)
"""Files that try every step, every crash and every fault of something one by one: `make prove` runs them."""


MEMORY = Path("/dev/shm")
_FREE_BYTES = 1 << 30
"""So much has to be free in memory for temporary files to be there."""


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary files into memory unless TMPDIR says where, and drop our log unless it is wanted."""
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > _FREE_BYTES:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # another plugin may have asked already
    if config.getoption("capture") != "no":
        structlog.configure(processors=[_unsaid])
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(DurationReport(DURATIONS))


def _unsaid(_logger: Any, _method: str, _event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: a quarter of the time, each worker would walk ten thousand cases again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Tell what is thorough, and begin with the longest of what is selected."""
    thorough = {ROOT / name for name in THOROUGH}
    for item in items:
        if item.path in thorough:
            item.add_marker(pytest.mark.thorough)
    yield
    longest_first(items, Durations.read(DURATIONS))


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileOrSlice | None:
    """Have workers share the slices of seeds of a file."""
    return FileOrSlice(config, log) if config.getoption("dist") == "loadfile" else None


world = provided_by(simulate)


@pytest.fixture
def run_directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that all cases of one test have in common, in whatever workers they are run."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    directory: Path = common / "common" / request.path.stem / request.node.originalname
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function, in its environment if it has one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    run_coroutine(pyfuncitem)
    return True
