import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openstack.plane.plane import Plane


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """An OpenStack of our own: from nothing, or resumed in the directory that REMUDA_OPENSTACK names."""
    kept = os.environ.get("REMUDA_OPENSTACK")
    with Plane(Path(kept) if kept else tmp_path_factory.mktemp("openstack")) as running:
        yield running
