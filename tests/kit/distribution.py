"""Distribution of cases over the workers of pytest-xdist: a file at a time, and each slice of seeds by itself.

A file at a time, because what a file sets up, it then sets up once. A slice of seeds takes as long as many files and
sets nothing up, so workers share the slices of one file. The groups of `--dist loadgroup` would do the same, but
change the id of every case.
"""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.kit.simulation.slices import is_slice


class FileOrSlice(LoadFileScheduling):  # type: ignore[misc]
    """Gives a worker a whole file, or one slice of seeds."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if is_slice(nodeid) else super()._split_scope(nodeid)
