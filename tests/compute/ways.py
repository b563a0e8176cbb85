"""Scenarios in both ways: all services in one process, and each as if in its own.

That one is thorough: `make prove` runs it. A test belongs to this if it, or a function of its file that it calls, runs
a scenario; if no scenario is run in the end, it fails. A directory's `conftest` says by what function its tests do:

::

    from tests.compute.ways import both_ways, way

    __all__ = ["pytest_generate_tests", "way"]

    pytest_generate_tests = both_ways(in_a_compute)
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.compute.apart import apart_in
from tests.compute.house import WAY, ComputeHouse, Given
from tests.sim.runner import World

APART = pytest.param("apart", marks=pytest.mark.thorough)


def both_ways(run: Callable[..., None]) -> Callable[[pytest.Metafunc], None]:
    """Have whatever runs a scenario by this function run once more."""

    def generate(metafunc: pytest.Metafunc) -> None:
        if calls(metafunc.function, run):
            metafunc.parametrize("way", ["together", APART], indirect=True)

    return generate


@pytest.fixture(autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run scenarios in this way."""
    chosen: str = getattr(request, "param", "together")
    if chosen == "together":
        yield chosen
        return
    houses = []

    @asynccontextmanager
    async def seen(world: World, given: Given) -> AsyncIterator[ComputeHouse]:
        async with apart_in(world, given) as house:
            houses.append(house)
            yield house

    before = WAY.set(seen)
    yield chosen
    WAY.reset(before)
    assert houses, "it ran no scenario, so it has nothing to be apart"


def calls(function: Any, run: Callable[..., None]) -> bool:
    """Tell whether a function calls this one, or calls one of its own file that does."""
    known, seen, left = function.__globals__, set[str](), set(_names(function.__code__))
    while left:
        name = left.pop()
        if name == run.__name__:
            return known.get(name) is run
        seen.add(name)
        called = known.get(name)
        if isinstance(called, FunctionType) and called.__globals__ is known:
            left |= _names(called.__code__) - seen
    return False


def _names(code: CodeType) -> set[str]:
    """Return what code names, and the code in it."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names, inner))
