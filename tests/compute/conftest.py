"""Every scenario of compute is run in both ways: all services in one process, and each as if in its own.

That one is thorough: `make prove` runs it. A test belongs to this if it, or a function of its file that it calls, runs
a scenario (`in_a_compute`); if no scenario is run in the end, it fails.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.compute.apart import apart_in
from tests.compute.house import WAY, ComputeHouse, Given, in_a_compute
from tests.sim.runner import World

APART = pytest.param("apart", marks=pytest.mark.thorough)
_RUNS = in_a_compute.__name__


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have whatever runs a scenario run once more."""
    if runs_scenarios(metafunc.function):
        metafunc.parametrize("way", ["together", APART], indirect=True)


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


def runs_scenarios(function: Any) -> bool:
    """Tell whether a function runs scenarios, or calls one of its own file that does."""
    known, seen, left = function.__globals__, set[str](), set(_names(function.__code__))
    while left:
        name = left.pop()
        if name == _RUNS:
            return known.get(_RUNS) is in_a_compute
        seen.add(name)
        called = known.get(name)
        if isinstance(called, FunctionType) and called.__globals__ is known:
            left |= _names(called.__code__) - seen
    return False


def _names(code: CodeType) -> set[str]:
    """Return what code names, and the code in it."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names, inner))
