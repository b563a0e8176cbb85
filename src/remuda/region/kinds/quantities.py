"""Sizes. Stored ones are bytes, as whole numbers; people speak of GiB."""

GIB = 1 << 30
"""Bytes of one GiB."""


def gib_of(size: int) -> int:
    """Return how many whole GiB there are in so many bytes."""
    return size // GIB
