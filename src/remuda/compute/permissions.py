"""Rights to what compute has, by the names that roles give them."""

from remuda.access.principal import Permission, Verb


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a right to an endpoint of compute's, such as `instances`."""
    return Permission(f"compute:{endpoint}", verb)
