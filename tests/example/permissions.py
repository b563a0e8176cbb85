"""The livery's rights."""

from remuda.access.principal import Permission, Verb


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a right of the livery's."""
    return Permission(f"livery:{endpoint}", verb)
