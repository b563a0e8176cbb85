"""What is shown of a server that asking something of it leaves as it was."""

from typing import Any


def shown_of(server: Any) -> dict[str, Any]:
    """Return its status but for what counts how often something was asked of it."""
    return {name: value for name, value in server["status"].items() if name not in {"revision", "replacements"}}
