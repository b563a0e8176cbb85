"""What is shown of a server that asking something of it leaves as it was."""

from typing import Any


def shown_of(server: Any) -> dict[str, Any]:
    """Return its status but for its revision, which counts what was asked of it."""
    return {name: value for name, value in server["status"].items() if name != "revision"}
