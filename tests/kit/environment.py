"""Environments: fixtures that run a whole test inside a simulated system.

A launcher is a function `launch(test, **options)` that sets a system up, runs the coroutine function `test` with it,
often in simulated time and under several seeds, and tears it down. A fixture made by `provided_by(launch)` stands for
what the launcher hands to the test. The test is a coroutine function with that fixture among its parameters;
`@options` says what it wants otherwise.

::

    compute = provided_by(in_a_compute)  # in the directory's conftest.py

    @options(is_instant=True)
    async def test_m09_an_instance_is_rebooted(compute: ComputeEnvironment) -> None:
        network = await compute.region.network()

A launcher that hands several things over has a fixture for each, by position. A test has fixtures of one launcher.
An option that depends on the arguments of the test, or that no two tests may share, is computed for each case::

    @pytest.mark.parametrize("faults", [{"server": 0.5}, {"network": 0.5}])
    @options(lambda faults: {"cloud": Cloud(faults)}, is_instant=True)
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

Launcher = Callable[..., object]
T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True, kw_only=True)
class Provided:
    """Value of such a fixture before the launcher runs: one of the things that the launcher is going to hand over."""

    launcher: Launcher
    position: int = 0


def options(*computed: Callable[..., Mapping[str, Any]], **chosen: Any) -> Callable[[Test], Test]:
    """Mark a test with what it wants otherwise: keyword arguments for the launcher of its environment.

    `computed` are functions that return such arguments. Their parameters are fixtures or parameters of the test, which
    the test itself need not have.
    """
    names = sorted({name for compute in computed for name in inspect.signature(compute).parameters})

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.options.with_args(*computed, **chosen)(test)
        return pytest.mark.usefixtures(*names)(marked) if names else marked

    return mark


def provided_by(launcher: Launcher, *needed: str, position: int = 0) -> Any:
    """Return a fixture for what the launcher hands over at this position; `needed` are fixtures that it depends on."""

    def provided(**_: Any) -> Provided:
        return Provided(launcher=launcher, position=position)

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in needed]
    provided.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # pytest looks for it
    return pytest.fixture(provided)


def run_coroutine(item: pytest.Function) -> None:
    """Run a test that is a coroutine function: in its environment, else on a loop of its own in real time."""
    arguments = {name: item.funcargs[name] for name in inspect.signature(item.obj).parameters}
    launchers = {each.launcher for each in item.funcargs.values() if isinstance(each, Provided)}
    mark = item.get_closest_marker("options")
    assert len(launchers) <= 1, "a test has one environment"
    assert launchers or mark is None, "options are for an environment, and the test has none"
    if not launchers:
        asyncio.run(item.obj(**arguments))
        return
    chosen = _chosen(mark, item.funcargs) if mark is not None else {}
    for launcher in launchers:
        launcher(lambda *values: item.obj(**_filled(arguments, values)), **chosen)


def _chosen(mark: pytest.Mark, arguments: Mapping[str, Any]) -> dict[str, Any]:
    chosen = dict(mark.kwargs)
    for compute in mark.args:
        chosen |= compute(**{name: arguments[name] for name in inspect.signature(compute).parameters})
    return chosen


def _filled(arguments: Mapping[str, Any], values: tuple[Any, ...]) -> dict[str, Any]:
    return {name: values[each.position] if isinstance(each, Provided) else each for name, each in arguments.items()}


async def run_inline(work: Callable[[], T]) -> T:
    """Do at once what would be done in a thread: there is one in a simulation."""
    return work()
