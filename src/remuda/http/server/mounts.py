"""Several APIs in one process, each below a prefix of its own.

The longest prefix that fits takes the request. The path stays whole, and `root_path` says how much of it belongs to the
mount, as ASGI has it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from remuda.http.tables import Table


@dataclass(frozen=True, slots=True)
class Mounted:
    """An API at its place."""

    prefix: str
    """Such as `/compute`; empty for one that has all the room."""
    table: Table
    app: ASGIApp
    pages: Mapping[str, str] = field(default_factory=dict)
    """Where people begin with a browser: what the link says, by the path behind the prefix."""


class Mounts:
    """Sends each request to the API it belongs to, and to `otherwise` if there is none.

    The paths in `kept` always go there: no API, wherever it is mounted, can hide whether the process lives.
    """

    def __init__(self, mounted: Iterable[Mounted], otherwise: ASGIApp, *, kept: Collection[str] = ()) -> None:
        self._mounted = sorted(mounted, key=lambda one: len(one.prefix), reverse=True)
        self._otherwise, self._kept = otherwise, frozenset(kept)
        prefixes = [one.prefix for one in self._mounted]
        if len(set(prefixes)) < len(prefixes):
            raise ValueError(f"two APIs are mounted at one prefix: {prefixes}")
        if wrong := [prefix for prefix in prefixes if prefix and (prefix[0] != "/" or prefix[-1] == "/")]:
            raise ValueError(f"a prefix begins with a slash and does not end with one: {wrong}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        one = self._find(scope["path"])
        if one is None:
            await self._otherwise(scope, receive, send)
            return
        if one.prefix:
            scope = {**scope, "root_path": scope.get("root_path", "") + one.prefix}
        await one.app(scope, receive, send)

    def _find(self, path: str) -> Mounted | None:
        if path in self._kept:
            return None
        for one in self._mounted:
            if path.startswith(one.prefix) and path[len(one.prefix) :][:1] in {"/", ""}:
                return one
        return None
