import asyncio
import shutil
from pathlib import Path

import pytest

from remuda.datadir import DataDirectory
from tests.kit.processes.sealed_data import furnish


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with secrets, which tests copy."""
    path = tmp_path_factory.mktemp("furnished") / "data"
    asyncio.run(furnish(DataDirectory(path)))
    return path


@pytest.fixture
def data(furnished: Path, tmp_path: Path) -> DataDirectory:
    return DataDirectory(shutil.copytree(furnished, tmp_path / "data"))
