import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openstack.cloud import Cloud, described
from tests.openstack.plane.plane import Plane
from tests.openstack.plane.programs import InstallError
from tests.openstack.regions import domain_of_its_own

RUNNING = os.environ.get("REMUDA_OPENSTACK")
"""Directory of a plane that `python -m tests.openstack.plane up` keeps running, for quick repetitions by hand."""


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """An OpenStack of our own, from nothing; or the one that runs already."""
    if os.environ.get("REMUDA_SKIP_OPENSTACK"):
        pytest.skip("REMUDA_SKIP_OPENSTACK is set")
    if RUNNING:
        yield Plane(Path(RUNNING))
        return
    started = Plane(tmp_path_factory.mktemp("openstack"))
    try:
        started.start()
    except InstallError as error:
        pytest.exit(f"{error} Set REMUDA_SKIP_OPENSTACK=1 to do without.", returncode=1)
    with started:
        yield started


@pytest.fixture
def own_plane(plane: Plane) -> Plane:
    """The plane, whose processes a test may stop."""
    if RUNNING:
        pytest.skip("another process keeps this plane running")
    return plane


@pytest.fixture(scope="module")
def cloud(plane: Plane) -> Iterator[Cloud]:
    """A region with a domain of its own."""
    with domain_of_its_own(plane) as domain:
        yield described(domain)
