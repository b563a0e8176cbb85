"""The images room as its handlers are given it."""

from dataclasses import dataclass

from remuda.region.images.service import Images, Snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRoom:
    """The room."""

    images: Images
    snapshots: Snapshots
