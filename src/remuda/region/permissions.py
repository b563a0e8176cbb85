"""Rights to what region has, by the names that roles give them."""

from remuda.access.principal import Permission, Verb


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a right to an endpoint of region's, such as `networks:v2` or `networks:v2/references`."""
    return Permission(f"region:{endpoint}", verb)
