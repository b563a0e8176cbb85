"""Dispatch of paths to endpoints, by a tree of segments.

The depth of the tree is the number of segments of a path, however many routes there are. A fixed segment is preferred
to a parameter; if that branch has no match, the other is tried. An empty segment can be a parameter, so a missing id is
reported as an invalid id and not as an unknown path.

A path is split at its slashes before its segments are decoded, so a parameter can contain an encoded slash. Clients of
the reference implementation encode twice, because it decodes twice; so a parameter that still contains percent signs is
decoded once more, unless it is no encoding: then it was encoded once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from remuda.http.asgi import Scope
from remuda.kernel.errors import Malformed
from remuda.kernel.percent_encoding import percent_decoded

EndpointT = TypeVar("EndpointT")


@dataclass(slots=True)
class _Node(Generic[EndpointT]):
    fixed: dict[str, "_Node[EndpointT]"] = field(default_factory=dict)
    parameter: "_Node[EndpointT] | None" = None
    methods: dict[str, EndpointT] = field(default_factory=dict)

    def child(self, segment: str) -> "_Node[EndpointT]":
        if not segment.startswith("{"):
            return self.fixed.setdefault(segment, _Node())
        if self.parameter is None:
            self.parameter = _Node()
        return self.parameter


class Match(msgspec.Struct, Generic[EndpointT], frozen=True):
    """A known path: the endpoint of each method, and the parameters in order."""

    methods: Mapping[str, EndpointT]
    parameters: tuple[str, ...]


class PathTrie(Generic[EndpointT]):
    """All paths of a route table."""

    def __init__(self, entries: Iterable[tuple[str, str, EndpointT]]) -> None:
        """Take the method, the path template and the endpoint of each route."""
        self._root: _Node[EndpointT] = _Node()
        self._depth = 0
        for method, path, endpoint in entries:
            node, segments = self._root, path[1:].split("/")
            self._depth = max(self._depth, len(segments))
            for segment in segments:
                node = node.child(segment)
            node.methods[method] = endpoint

    def find(self, path: str) -> Match[EndpointT] | None:
        """Return the match of an undecoded path, or None."""
        segments = path[1:].split("/", self._depth)
        if len(segments) > self._depth:
            return None
        if "%" in path:
            segments = [_decoded(segment) for segment in segments]
        found = _walk(self._root, segments, 0)
        if found is None:
            return None
        methods, values = found
        if "%" in path:
            values = tuple(_decoded_again(value) for value in values)
        return Match(methods, values)


def whole_path_of(scope: Scope) -> str:
    raw = scope.get("raw_path")
    return quote(scope["path"]) if raw is None else raw.decode("latin-1")


def path_of(scope: Scope) -> str:
    """Return the undecoded path of a request below its service's mount point."""
    path = whole_path_of(scope)
    mounted_at: str = scope.get("root_path", "")
    return path[len(mounted_at) :] if mounted_at and path.startswith(mounted_at) else path


def _walk(
    node: _Node[EndpointT], segments: list[str], position: int
) -> tuple[dict[str, EndpointT], tuple[str, ...]] | None:
    values: tuple[str, ...] = ()
    for at in range(position, len(segments)):
        segment = segments[at]
        preferred, parameter = node.fixed.get(segment), node.parameter
        if preferred is None:
            if parameter is None:
                return None
            node, values = parameter, (*values, segment)
        elif parameter is None:
            node = preferred
        else:  # only here may the preferred branch have no match and the other one have it
            found = _walk(preferred, segments, at + 1)
            if found is not None:
                return found[0], values + found[1]
            node, values = parameter, (*values, segment)
    return (node.methods, values) if node.methods else None


def _decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        encoded = percent_decoded(segment.encode())
    except ValueError:
        raise Malformed(
            "invalid path/query element: a percent sign of the path begins no escape: send %25 for the sign itself"
        ) from None
    return _text(encoded)


def _decoded_again(value: str) -> str:
    if "%" not in value:
        return value
    try:
        encoded = percent_decoded(value.encode())
    except ValueError:
        return value
    return _text(encoded)


def _text(encoded: bytes) -> str:
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        raise Malformed("invalid path/query element: the path is not UTF-8") from None
