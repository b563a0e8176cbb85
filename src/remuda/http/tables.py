"""A table: all routes of one service. One that contradicts itself is a defect, and cannot be made."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from types import NoneType

from remuda.http.routes import AnyRoute


class Table:
    """All routes of one service. Raises ValueError, with all that is wrong, if they contradict each other."""

    def __init__(self, service: str, *, title: str, description: str, routes: Iterable[AnyRoute]) -> None:
        self.service, self.title, self.description = service, title, description
        self.routes: tuple[AnyRoute, ...] = tuple(routes)
        if faults := [*_clashes(self.routes), *(fault for route in self.routes for fault in _faults(route))]:
            raise ValueError(f"the routes of {service} do not fit: {'; '.join(faults)}")

    def action_of(self, route: AnyRoute) -> str:
        """Return what a route does to what the rest of its path names, as `saddle` in `/horses/{id}/saddle`, or "".

        What can be read, or has something below it, is no action but a thing: something is made there. And what is made
        belongs to nothing, or is answered.
        """
        place, _, last = route.path.rpartition("/")
        if route.method != "POST" or last.startswith("{"):
            return ""
        others = [each.path for each in self.routes if each is not route]
        is_thing = any(f"{path}/".startswith(f"{route.path}/") for path in others)
        is_done = place.endswith("}") or route.answer_type is NoneType
        return last if is_done and not is_thing else ""


_SEGMENT = re.compile(r"[^{}/]+|\{[^{}/]+\}")
_SCOPES_WITHOUT_PERMISSION = {"public", "authenticated"}
_OK, _NO_CONTENT = 200, 204


def _clashes(routes: tuple[AnyRoute, ...]) -> Iterator[str]:
    shapes = Counter(route.shape for route in routes)
    yield from (f"{shape} is there twice" for shape, count in shapes.items() if count > 1)
    names = Counter(route.name for route in routes)
    yield from (f"the name {name} is there twice" for name, count in names.items() if count > 1)


def _faults(route: AnyRoute) -> Iterator[str]:
    fields = route.path_type.__struct_encode_fields__
    rules = {
        "has a path that is not /one/{two}/three": route.path == "/"
        or (route.path[:1] == "/" and all(map(_SEGMENT.fullmatch, route.path[1:].split("/")))),
        f"has {sorted(route.parameters)} in its path and {sorted(fields)} in its type": sorted(route.parameters)
        == sorted(fields),
        f"has scope {route.scope} and permission {route.permission}": (route.scope in _SCOPES_WITHOUT_PERMISSION)
        == (route.permission is None),
        "has a body, which a GET or DELETE must not": not (route.has_body and route.method in {"GET", "DELETE"}),
        "is conditional, which only a write can be": not (route.is_conditional and route.method == "GET"),
        "answers something with a 204": route.success != _NO_CONTENT or route.answer_type is NoneType,
        "has another answer with the status of its usual one": route.other is None
        or route.other.status != route.success,
        "answers repeats anew, and keeps what it answers": route.repeated is None or route.holds_secret,
        "is a form without a body": not route.form or route.has_body,
        "is a page, for OAuth2 and a list, of which it can be one": not (route.page and route.oauth)
        and not ((route.page or route.oauth) and route.is_list),
        "has a header that is not in lower case": all(name == name.lower() for name in route.headers),
        "is a collection and no GET that answers 200 with a list": not route.is_paged
        or (route.method == "GET" and route.success == _OK and route.is_list),
    }
    yield from (f"{route.name} {fault}" for fault, holds in rules.items() if not holds)
