"""All benchmarks: each is a package here, and each of its groups a module in that package.

A group's `measures` is a function from the bed of this run to its measures. Groups run in the order given here, in one
directory that goes when they are done; what a group needs is imported only when it is measured.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from msgspec.structs import replace

from bench.bed import FULL, QUICK, Bed
from bench.report import Measure

__all__ = ["BACKENDS", "GROUPS", "chosen", "measures"]

Groups = Mapping[str, Sequence[str]]

GROUPS: Mapping[str, Groups] = {
    "store": {
        "sqlite": ("writes", "saturation", "watchers", "gets", "pages", "opening", "blocking"),
        "kubernetes": ("kubernetes",),
    },
    "http": {"sqlite": ("requests", "validating", "lists", "long_lists", "streams")},
    "reconcile": {"sqlite": ("reconciling", "resync", "sources")},
    "operations": {"sqlite": ("journal", "speed")},
    "identity": {"sqlite": ("checking", "permissions", "ledger", "tokens", "reading", "blocking", "starting")},
    "region": {"sqlite": ("commits", "creating", "reconciling", "monitoring", "idling", "blocking")},
    "compute": {"sqlite": ("commits", "creating", "scaling", "starting", "idling", "blocking")},
    "up": {"sqlite": ("gets", "lists")},
}
"""By benchmark and backend: the modules of its groups."""

BACKENDS = sorted({backend for groups in GROUPS.values() for backend in groups})
"""Where a store may keep its objects."""


def chosen(names: Sequence[str], *, backend: str, only: str | None) -> list[tuple[str, str]]:
    """Return the benchmark and group of everything that was asked for."""
    every = [(name, group) for name in names for group in GROUPS[name].get(backend, ())]
    return [(name, group) for name, group in every if only in {None, group}]


def measures(groups: Sequence[tuple[str, str]], *, is_quick: bool) -> Iterator[Measure]:
    """Yield every measure of these groups."""
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as directory:
        bed = Bed(Path(directory), QUICK if is_quick else FULL)
        for name, group in groups:
            for each in import_module(f"bench.{name}.{group}").measures(bed):
                yield replace(each, bench=name)
