"""The one place where things are put together."""

from remuda.store.kinds import Registry

__all__ = ["registry"]


def registry() -> Registry:
    """Return every kind of every service. A service adds its kinds here when it comes."""
    return Registry([])
