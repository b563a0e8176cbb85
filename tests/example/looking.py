"""What a mount is called in the pasture."""

from tests.example.kinds import Mount


def pasture_name(mount: Mount) -> str:
    """Return the name under which the pasture has a mount: one per incarnation, and it is given only once."""
    return f"{mount.name}.{mount.uid}"
