"""How every test is run: coroutines on a loop of their own, the longest files first, in memory, and without our log.

The log is not shown with what failed, which it would drown, and not written for nobody; `pytest -s` shows it.
Temporary files are in memory, where nobody waits for a disk: what a power cut leaves is for the simulated one to show,
and a process that is killed loses nothing of either.
"""

import asyncio
import inspect
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import structlog

ROOT = Path(__file__).parents[1]
THOROUGH = (
    "tests/contract/test_broken.py",
    "tests/durability/test_disk_trouble.py",
    "tests/durability/test_power_cut.py",
    "tests/identity/test_ledger_crashes.py",
    "tests/identity/test_login_crashes.py",
    "tests/identity/test_people_sagas.py",
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
LONGEST = (
    *THOROUGH,
    "tests/sim/test_compute.py",
    "tests/sim/test_region.py",
    "tests/fuzz/test_region.py",
    "tests/fuzz/test_compute.py",
    "tests/fuzz/test_identity.py",
    "tests/test_tour.py",
    "tests/authz/test_region.py",
    "tests/authz/test_compute.py",
    "tests/authz/test_livery.py",
    "tests/authz/test_identity.py",
    "tests/fuzz/test_livery.py",
    "tests/http/test_abuse.py",
    "tests/cli/test_region.py",
    "tests/cli/test_up.py",
    "tests/cli/test_first_start.py",
    "tests/cli/test_token.py",
    "tests/durability/test_kill_identity.py",
    "tests/region/test_projects_end.py",
    "tests/authz/test_interference.py",
    "tests/identity/test_quotas_histories.py",
    "tests/region/test_images_controller.py",
    "tests/sim/test_example.py",
    "tests/reconcile/test_algebra.py",
    "tests/sim/test_identity.py",
    "tests/durability/test_kill_livery.py",
    "tests/http/test_slow_readers.py",
)
"""Files that take the longest. Workers take files in turn: whoever begins with these waits for nobody."""


MEMORY = Path("/dev/shm")
_ROOM = 1 << 30
"""So much has to be free in memory for temporary files to be there."""


def pytest_configure(config: pytest.Config) -> None:
    """Have temporary files where it is fast, unless somebody says where; and say nothing, unless that is wanted."""
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > _ROOM:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # somebody may have asked already
    if config.getoption("capture") != "no":
        structlog.configure(processors=[_unsaid])


def _unsaid(_logger: Any, _method: str, _event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest, and tell what is thorough."""
    places = {ROOT / name: place for place, name in enumerate(LONGEST)}
    for item in items:
        if places.get(item.path, len(LONGEST)) < len(THOROUGH):
            item.add_marker(pytest.mark.thorough)
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function on a loop of its own, in real time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True
