"""The five routes of a resource: what they are by default, and what can be left out or changed."""

# mypy: disable-error-code="empty-body"

from functools import partial
from typing import Any

import pytest

from remuda.access.principal import Context, Permission
from remuda.http.crud import crud
from remuda.http.responses import Collection, EtagView, etag_view
from remuda.http.routes import AnyRoute, Table
from remuda.http.schema import ListQuery, Nothing, Parameters, Wire
from tests.kit.sample_kinds import Horse


class HorseRead(Wire, frozen=True):
    id: str


class HorseWrite(Wire, frozen=True):
    colour: str


class StallPath(Parameters, frozen=True, rename={"stall": "stallID"}):
    stall: str


class HorsePath(Parameters, frozen=True, rename={"horse": "horseID"}):
    horse: str


class StallHorsePath(StallPath, frozen=True, rename={"stall": "stallID", "horse": "horseID"}):
    horse: str


VIEW: EtagView[Horse, HorseRead] = etag_view(lambda horse: HorseRead(id=horse.name), lambda horse: horse.spec)


class Horses:
    async def list(self, context: Context, query: ListQuery) -> Collection[Horse, list[HorseRead]]: ...

    async def create(self, context: Context, body: HorseWrite) -> Horse: ...

    async def get(self, context: Context, horse: str) -> Horse: ...

    async def update(self, context: Context, horse: str, body: HorseWrite) -> Horse: ...

    async def delete(self, context: Context, horse: str) -> None: ...


class StalledHorses:
    async def list(self, context: Context, stall: str) -> Collection[Horse, list[HorseRead]]: ...

    async def create(self, context: Context, stall: str, body: HorseWrite) -> None: ...

    async def get(self, context: Context, stall: str, horse: str) -> Horse: ...

    async def update(self, context: Context, stall: str, horse: str, body: HorseWrite) -> None: ...

    async def delete(self, context: Context, stall: str, horse: str) -> None: ...


def horses(service: type = Horses, **fields: Any) -> list[AnyRoute]:
    given: dict[str, Any] = {
        "path": "/horses",
        "item": HorsePath,
        "name": "horse",
        "noun": "a horse",
        "permission": partial(Permission, "pasture:horses"),
        "view": VIEW,
        "create": HorseWrite,
        "update": HorseWrite,
        "read": HorseRead,
    }
    routes = crud(service, **given | fields)
    assert Table("pasture", title="Pasture", description="Horses.", routes=routes).routes == tuple(routes)
    return routes


def test_a_resource_has_five_routes() -> None:
    routes = horses(descriptions={"delete": "Its tack stays."})
    assert [(each.method, each.path, each.name, each.success) for each in routes] == [
        ("GET", "/horses", "list_horses", 200),
        ("POST", "/horses", "create_horse", 201),
        ("GET", "/horses/{horseID}", "get_horse", 200),
        ("PUT", "/horses/{horseID}", "update_horse", 202),
        ("DELETE", "/horses/{horseID}", "delete_horse", 202),
    ]
    assert [each.permission and each.permission.verb for each in routes] == [
        "read",
        "create",
        "read",
        "update",
        "delete",
    ]
    assert [each.calls for each in routes] == [Horses.list, Horses.create, Horses.get, Horses.update, Horses.delete]
    assert [each.body_type for each in routes] == [Nothing, HorseWrite, Nothing, HorseWrite, Nothing]
    assert [each.response_type for each in routes] == [list[HorseRead], HorseRead, HorseRead, HorseRead, type(None)]
    assert [each.view for each in routes] == [None, VIEW, VIEW, VIEW, None]
    assert [each.errors for each in routes] == [(), (404,), (), (), ()]
    assert [each.is_conditional for each in routes] == [False, False, False, True, True]
    assert {each.scope for each in routes} == {"project"}
    assert [each.summary for each in routes] == [
        "List the horses that the caller may see",
        "Create a horse",
        "Read a horse",
        "Update a horse",
        "Delete a horse",
    ]
    assert [each.description for each in routes] == ["", "", "", "", "Its tack stays."]


def test_routes_without_a_body_type_are_left_out_and_others_by_name() -> None:
    routes = horses(create=None, update=None, without=("list",))
    assert [each.name for each in routes] == ["get_horse", "delete_horse"]


def test_plurals_can_be_given() -> None:
    routes = horses(name="ox", names="oxen", noun="an ox", plural_noun="oxen")
    assert (routes[0].name, routes[0].summary) == ("list_oxen", "List the oxen that the caller may see")
    assert (routes[1].name, routes[1].summary) == ("create_ox", "Create an ox")


def test_a_resource_may_be_below_another_and_differ() -> None:
    routes = horses(
        StalledHorses,
        path="/stalls/{stallID}/horses",
        parent=StallPath,
        item=StallHorsePath,
        scope="organization",
        accepted=("delete",),
        is_conditional=False,
        summaries={"delete": "Sell a horse"},
        overrides={"create": {"errors": ()}},
    )
    assert {each.path for each in routes} == {"/stalls/{stallID}/horses", "/stalls/{stallID}/horses/{horseID}"}
    assert [each.path_type for each in routes[:3]] == [StallPath, StallPath, StallHorsePath]
    assert [each.success for each in routes] == [200, 201, 200, 200, 202]
    assert routes[1].errors == ()
    assert [each.is_conditional for each in routes[3:]] == [False, False]
    assert [each.summary for each in routes[3:]] == ["Update a horse", "Sell a horse"]


def test_a_route_responds_nothing_if_its_method_returns_nothing() -> None:
    routes = horses(StalledHorses, path="/stalls/{stallID}/horses", parent=StallPath, item=StallHorsePath)
    nothing = (type(None), None)
    assert [(each.response_type, each.view) for each in routes[1:4]] == [nothing, (HorseRead, VIEW), nothing]


def test_an_object_needs_one_parameter_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"StallHorsePath needs one parameter beside those of Nothing"):
        horses(item=StallHorsePath)


def test_an_override_that_no_route_has_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        horses(overrides={"create": {"colour": "bay"}})
