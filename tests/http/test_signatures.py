"""Methods that fit their routes, and those that do not: every mismatch is found when the table is built."""

# mypy: disable-error-code="empty-body"

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

import pytest

from remuda.access.principal import Context, Permission
from remuda.http.responses import Collection, EtagView, OtherResponse, Redirect, Rendered, Viewed, etag_view
from remuda.http.routes import AnyRoute, OtherResponseType, Route, Table
from remuda.http.schema import ListQuery, Parameters, Wire
from remuda.http.signatures import Arguments
from tests.kit.sample_kinds import Horse

T = TypeVar("T")


class HorseRead(Wire, frozen=True):
    id: str


class HorseWrite(Wire, frozen=True):
    colour: str


class PonyWrite(HorseWrite, frozen=True):
    height: int = 0


class Plan(Wire, frozen=True):
    steps: int


class StallPath(Parameters, frozen=True, rename={"stall": "stallID", "horse": "horseID"}):
    stall: str
    horse: str


class RideQuery(Parameters, frozen=True):
    gait: Literal["walk", "trot"] = "walk"
    laps: int | None = None


class RideListQuery(ListQuery, frozen=True):
    gait: tuple[str, ...] = ()


VIEW: EtagView[Horse, HorseRead] = etag_view(lambda horse: HorseRead(id=horse.name), lambda horse: horse.spec)
READ = Permission("pasture:horses", "read")


class Base(Generic[T]):
    async def inherited(self, context: Context, stall: str, horse: str) -> T:
        raise NotImplementedError(context, stall, horse)


class Horses(Base[Horse]):
    async def all_positional(self, context: Context, stall: str, horse: str, body: HorseWrite) -> None: ...

    async def other_order(self, body: HorseWrite, horse: str, context: Context, stall: str) -> None: ...

    async def keywords(self, context: Context, stall: str, horse: str, *, gait: str, laps: int | None) -> None: ...

    async def whole_query(self, context: Context, stall: str, horse: str, query: RideQuery) -> None: ...

    async def object_id(self, context: Context, stall: str, id: str) -> None: ...  # noqa: A002  as shared methods have it

    async def gap(self, context: Context, depth: int = 3, stall: str = "", horse: str = "") -> None: ...

    async def bare(self) -> HorseRead: ...

    async def context_only(self, context: Context) -> None: ...

    async def any_body(self, context: Context, body: Any) -> None: ...

    async def wider_body(self, context: Context, body: HorseWrite) -> None: ...

    async def listed(self, context: Context, gait: Sequence[str]) -> Collection[Horse, list[HorseRead]]: ...

    async def unfiltered(self, context: Context) -> Collection[Horse, list[HorseRead]]: ...

    async def tuple_of(self, context: Context) -> tuple[HorseRead, ...]: ...

    async def stored(self, context: Context) -> Horse: ...

    async def shown(self, context: Context) -> Viewed[HorseRead] | Rendered[HorseRead] | Redirect: ...

    async def planned(self, context: Context) -> Horse | OtherResponse[Plan]: ...

    async def text(self, context: Context) -> str: ...

    async def many_stored(self, context: Context) -> Collection[Horse, list[Plan]]: ...

    async def unknown(self, context: Context, stall: str, horse: str, saddle: str) -> None: ...

    async def wrong_type(self, context: Context, stall: int, horse: str) -> None: ...

    async def wrong_query(self, context: Context, *, gait: Literal["walk"], laps: int | None) -> None: ...

    async def half_path(self, context: Context, horse: str) -> None: ...

    async def half_query(self, context: Context, *, gait: str) -> None: ...

    async def both_queries(self, context: Context, query: RideQuery, gait: str) -> None: ...

    async def anything(self, context: Context, **more: Any) -> None: ...

    async def unreadable(self, context: Context, body: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821


class Others:
    async def orphan(self, context: Context) -> None: ...


def route(calls: Any, **fields: Any) -> AnyRoute:
    given: dict[str, Any] = {
        "method": "POST",
        "path": "/horses",
        "name": "ride",
        "summary": "Ride",
        "scope": "authenticated",
        "service": Horses,
        "calls": calls,
    }
    return Route(**given | fields)


def table(*routes: AnyRoute) -> Table:
    return Table("pasture", title="Pasture", description="Horses.", routes=routes)


IN_STALL: dict[str, Any] = {"path": "/stalls/{stallID}/horses/{horseID}", "path_type": StallPath}
PLACE = ("context", "path.stall", "path.horse")


@pytest.mark.parametrize(
    ("calls", "fields", "wanted"),
    [
        (Horses.all_positional, IN_STALL | {"body_type": HorseWrite}, Arguments((*PLACE, "body"))),
        (
            Horses.other_order,
            IN_STALL | {"body_type": HorseWrite},
            Arguments(("body", "path.horse", "context", "path.stall")),
        ),
        (
            Horses.keywords,
            IN_STALL | {"query_type": RideQuery},
            Arguments(PLACE, {"gait": "query.gait", "laps": "query.laps"}),
        ),
        (Horses.whole_query, IN_STALL | {"query_type": RideQuery}, Arguments((*PLACE, "query"))),
        (Horses.object_id, IN_STALL, Arguments(PLACE)),
        (Horses.gap, IN_STALL, Arguments(("context",), {"stall": "path.stall", "horse": "path.horse"})),
        (Horses.bare, {"response_type": HorseRead}, Arguments()),
        (Horses.context_only, {}, Arguments(("context",))),
        (Horses.any_body, {"body_type": HorseWrite}, Arguments(("context", "body"))),
        (Horses.wider_body, {"body_type": PonyWrite}, Arguments(("context", "body"))),
        (Horses.inherited, IN_STALL | {"response_type": HorseRead, "view": VIEW}, Arguments(PLACE)),
    ],
)
def test_arguments_are_bound_by_name(calls: Any, fields: dict[str, Any], wanted: Arguments) -> None:
    assert table(route(calls, **fields)).routes[0].arguments == wanted


def test_a_method_need_not_take_what_every_list_has() -> None:
    made = route(Horses.unfiltered, method="GET", query_type=ListQuery, response_type=list[HorseRead])
    assert table(made).routes[0].arguments == Arguments(("context",))


@pytest.mark.parametrize(
    ("calls", "fields"),
    [
        (
            Horses.listed,
            {"method": "GET", "query_type": RideListQuery, "response_type": list[HorseRead]},
        ),
        (Horses.tuple_of, {"response_type": list[HorseRead]}),
        (Horses.stored, {"response_type": HorseRead, "view": VIEW}),
        (Horses.stored, {}),
        (Horses.shown, {"response_type": HorseRead, "redirects": True}),
        (
            Horses.planned,
            {
                "response_type": HorseRead,
                "view": VIEW,
                "other": OtherResponseType(status=202, response_type=Plan, about="A dry run."),
            },
        ),
    ],
)
def test_a_method_returns_what_its_route_answers(calls: Any, fields: dict[str, Any]) -> None:
    assert table(route(calls, **fields)).routes[0].calls is calls


@pytest.mark.parametrize(
    ("calls", "fields", "why"),
    [
        (Horses.unknown, IN_STALL, "takes the argument saddle, which the route does not have"),
        (Horses.wrong_type, IN_STALL, "takes stall as int, and the route has str"),
        (Horses.wrong_query, {"query_type": RideQuery}, r"takes gait as typing.Literal\['walk'\], and the route has"),
        (Horses.half_path, IN_STALL, "does not take the argument stall"),
        (Horses.half_query, {"query_type": RideQuery}, "does not take the argument laps"),
        (Horses.context_only, {"body_type": HorseWrite}, "does not take the argument body"),
        (Horses.wider_body, {"body_type": Plan}, "takes body as HorseWrite, and the route has Plan"),
        (Horses.wider_body, {}, "takes the argument body, which the route does not have"),
        (Horses.both_queries, {"query_type": RideQuery}, "takes query and its field gait"),
        (Horses.anything, {}, r"takes \*\*more: Any, which cannot be bound by name"),
        (Horses.unreadable, {"body_type": HorseWrite}, "has annotations that cannot be read: name 'Missing'"),
        (Horses.bare, {"scope": "project", "permission": READ, "response_type": HorseRead}, "argument context"),
        (Others.orphan, {}, "is no method of the route's service Horses"),
        (Horses.context_only, {"service": None}, "is no method of the route's service None"),
        (Horses.text, {"response_type": HorseRead}, "returns str, and the route responds with HorseRead"),
        (Horses.stored, {"response_type": HorseRead}, "returns Horse, .* a stored object needs a view"),
        (Horses.bare, {"response_type": HorseRead, "view": VIEW}, "returns no stored object, and the route has a view"),
        (
            Horses.planned,
            {"response_type": HorseRead, "view": VIEW},
            r"returns .*OtherResponse\[.*Plan\], and the route responds with",
        ),
        (Horses.context_only, {"response_type": HorseRead}, "returns NoneType, and the route responds with HorseRead"),
        (Horses.many_stored, {"response_type": list[HorseRead]}, r"returns .*Collection\[.*Plan\]\], and the route"),
    ],
)
def test_a_method_that_does_not_fit_is_refused_with_route_and_reason(
    calls: Any, fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=f"ride calls {calls.__qualname__}, which .*{why}"):
        table(route(calls, **fields))


def test_a_repeat_takes_what_it_needs() -> None:
    fields = IN_STALL | {"body_type": HorseWrite, "has_secret": True, "repeat_calls": Horses.half_path}
    made = route(Horses.all_positional, **fields)
    assert table(made).routes[0].repeat_arguments == Arguments(("context", "path.horse"))


def test_a_repeat_that_does_not_fit_is_refused() -> None:
    made = route(Horses.context_only, has_secret=True, repeat_calls=Horses.half_path)
    with pytest.raises(ValueError, match=r"ride calls Horses.half_path, which takes the argument horse"):
        table(made)


def test_two_parameters_of_one_name_are_refused() -> None:
    class Gait(Parameters, frozen=True):
        gait: str

    made = route(Horses.half_query, path="/gaits/{gait}", path_type=Gait, query_type=RideQuery)
    with pytest.raises(ValueError, match=r"cannot tell query.gait from path.gait"):
        table(made)


async def _handle(_service: Any, _call: Any) -> None: ...


@pytest.mark.parametrize("handler", [None, _handle])
def test_a_route_has_a_method_or_a_handler(handler: Any) -> None:
    calls = None if handler is None else Horses.context_only
    with pytest.raises(ValueError, match="ride needs a method that it calls or a handler, and not both"):
        table(route(calls, handler=handler))
