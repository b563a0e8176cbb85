"""The store's benchmark: a module here measures one group, and is named in `GROUPS` under its backend.

Its `measures` is a function from the bed of this run to its measures. A backend's groups run in the order given here,
in one directory that goes when they are done; what a backend needs is imported only when it is measured.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from bench.report import Measure
from bench.store.bed import FULL, QUICK, Bed

__all__ = ["GROUPS", "measures"]

GROUPS: Mapping[str, Sequence[str]] = {
    "sqlite": ("writes", "saturation", "watchers", "gets", "pages", "opening", "holding"),
    "kubernetes": ("kubernetes",),
}


def measures(*, backend: str, is_quick: bool, only: str | None) -> Iterator[Measure]:
    """Yield every measure of a backend, or those of one group."""
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as directory:
        bed = Bed(Path(directory), QUICK if is_quick else FULL)
        for group in GROUPS[backend]:
            if only in {None, group}:
                yield from import_module(f"bench.store.{group}").measures(bed)
