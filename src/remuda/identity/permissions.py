"""Rights to what identity has, by the names that roles give them."""

from remuda.access.principal import Permission, Verb


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a right to an endpoint of identity's, such as `projects` or `projects/references`."""
    return Permission(f"identity:{endpoint}", verb)
