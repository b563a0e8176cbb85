"""Tests in both ways: all services in one process (`together`), and each as if in its own (`apart`).

The second is thorough: `make prove` runs it. A test is run in both ways if it depends on the fixture `way`, as the
fixture `compute` does; a test that runs a scenario by itself names `way` among its `usefixtures`. A directory's
`conftest` takes both names from here:

::

    from tests.kit.compute.deployments import pytest_generate_tests, way

    __all__ = ["pytest_generate_tests", "way"]
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.kit.compute.apart import apart_in
from tests.kit.compute.environment import WAY, ComputeEnvironment, ComputeOptions
from tests.kit.simulation.runner import World

APART = pytest.param("apart", marks=pytest.mark.thorough)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have whatever depends on `way` run in both."""
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", ["together", APART], indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run scenarios in this way."""
    chosen: str = request.param
    if chosen == "together":
        yield chosen
        return
    environments = []

    @asynccontextmanager
    async def seen(world: World, given: ComputeOptions) -> AsyncIterator[ComputeEnvironment]:
        async with apart_in(world, given) as compute:
            environments.append(compute)
            yield compute

    before = WAY.set(seen)
    yield chosen
    WAY.reset(before)
    assert environments, "it ran no scenario, so it has nothing to be apart"
