from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.http.dispatch import PathTrie, path_of
from remuda.http.routes import Table
from remuda.kernel.errors import Malformed
from tests.kit.sample_api.pipeline import (
    HORSE,
    HORSES,
    HorsePath,
    OrganizationPath,
    ReferencePath,
    route,
    running,
    table,
)

TREE = PathTrie(
    [
        ("GET", "/", "root"),
        ("GET", "/a", "a"),
        ("POST", "/a", "make a"),
        ("GET", "/a/{id}", "one a"),
        ("GET", "/a/best", "best a"),
        ("GET", "/a/{id}/parts", "parts"),
        ("GET", "/a/best/{medal}", "medal"),
        ("GET", "/b/{one}/{two}", "two"),
    ]
)


def found(path: str, method: str = "GET") -> tuple[str, tuple[str, ...]] | None:
    match = TREE.find(path)
    return None if match is None else (match.methods[method], match.parameters)


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/", ("root", ())),
        ("/a", ("a", ())),
        ("/a/17", ("one a", ("17",))),
        ("/a/best", ("best a", ())),
        ("/a/best/gold", ("medal", ("gold",))),
        ("/a/17/parts", ("parts", ("17",))),
        ("/b/x/y", ("two", ("x", "y"))),
    ],
)
def test_a_path_leads_to_its_endpoint(path: str, endpoint: tuple[str, tuple[str, ...]]) -> None:
    assert found(path) == endpoint


def test_a_fixed_segment_beats_a_parameter_and_gives_way_where_it_leads_nowhere() -> None:
    assert found("/a/best") == ("best a", ())
    tree = PathTrie([("GET", "/a/best/medal", 1), ("GET", "/a/{id}/parts", 2)])
    match = tree.find("/a/best/parts")
    assert match is not None
    assert (match.methods, match.parameters) == ({"GET": 2}, ("best",))


@pytest.mark.parametrize("path", ["/c", "/a/17/nonsense", "/a/17/parts/", "/b/x", "//a", "/A"])
def test_an_unknown_path_leads_nowhere(path: str) -> None:
    assert found(path) is None


def test_a_missing_segment_is_an_empty_parameter() -> None:
    assert found("/a/") == ("one a", ("",))
    assert found("/b//y") == ("two", ("", "y"))


def test_all_methods_of_a_path_are_told() -> None:
    match = TREE.find("/a")
    assert match is not None
    assert match.methods == {"GET": "a", "POST": "make a"}


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="%"), min_size=1))
def test_a_parameter_may_be_encoded_once_or_twice_and_hold_anything(value: str) -> None:
    once = quote(value, safe="")
    assert found(f"/a/{once}/parts") == ("parts", (value,))
    assert found(f"/a/{quote(once, safe='')}/parts") == ("parts", (value,))


def test_an_encoded_slash_does_not_cut_a_path() -> None:
    assert found("/a/x%252Fparts") == ("one a", ("x/parts",))
    assert found("/a%2F17") is None


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(Malformed, match="invalid path/query element"):
        TREE.find("/a/%FF")


@pytest.mark.parametrize("path", ["/a/%", "/a/%4", "/a/%zz/parts", "/a/17%/parts"])
def test_m27_a_percent_sign_that_begins_no_escape_is_rejected(path: str) -> None:
    with pytest.raises(Malformed, match="%25"):
        TREE.find(path)


def test_a_value_with_a_percent_sign_may_be_encoded_once() -> None:
    assert found("/a/100%25/parts") == ("parts", ("100%",))


def test_m27_a_path_deeper_than_every_route_is_unknown_before_it_is_decoded() -> None:
    assert TREE.find("/a/b/c/d/%") is None
    assert TREE.find("/a" + "/%ff" * 10_000) is None


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ({"path": "/a/b c", "raw_path": b"/a/b%20c"}, "/a/b%20c"),
        ({"path": "/a/b c"}, "/a/b%20c"),
        ({"path": "/x/a", "raw_path": b"/x/a", "root_path": "/x"}, "/a"),
        ({"path": "/a", "raw_path": b"/a", "root_path": "/x"}, "/a"),
    ],
)
def test_the_path_is_the_undecoded_one_below_the_mount(scope: dict[str, Any], path: str) -> None:
    assert path_of(scope) == path


async def test_a_wrong_method_is_told_the_right_ones(tmp_path: Any) -> None:
    async with running(tmp_path) as api:
        reply = await api.client.put(f"{HORSES}/{HORSE}")
        assert (reply.status, reply.headers["allow"]) == (405, "DELETE, GET, HEAD, OPTIONS")
        assert reply.json["error_description"] == "the requested method was not allowed"
        assert (await api.client.send("PATCH", "/public")).headers["allow"] == "GET, HEAD, OPTIONS"


async def test_a_reference_with_a_slash_arrives_whole(tmp_path: Any) -> None:
    async with running(tmp_path) as api:
        for encoded in ("horses.test.remuda%252Fbella", "horses.test.remuda%2Fbella"):
            assert (await api.client.put(f"/api/v1/references/{encoded}")).status == 201
        assert [call.path.reference for call in api.service.calls] == ["horses.test.remuda/bella"] * 2


async def _unused(_service: object, _call: object) -> None:
    """Stand for a handler."""


def only(path: str = "/a", **changes: Any) -> Table:
    return Table("t", title="", description="", routes=[route("GET", path, "one", _unused, **changes)])


def test_a_table_that_contradicts_itself_cannot_be_made() -> None:
    one = route("GET", "/a/{organizationID}", "one", _unused, path_type=OrganizationPath)
    same_place = route("GET", "/a/{reference}", "two", _unused, path_type=ReferencePath)
    same_name = route("GET", "/b", "one", _unused)
    with pytest.raises(ValueError, match=r"the routes of t do not fit: GET /a/\{\} is there twice; the name one is"):
        Table("t", title="", description="", routes=[one, same_place, same_name])


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"path": "/a/{horseID}", "path_type": HorsePath}, r"has \['horseID'\] in its path and \['horseID', 'org"),
        ({"path": "/a/{horseID}"}, r"has \['horseID'\] in its path and \[\] in its type"),
        ({"path": "a"}, "has a path that is not"),
        ({"path": "/a/"}, "has a path that is not"),
        ({"path": "/a{b}"}, "has a path that is not"),
        ({"scope": "public"}, "has scope public and permission Permission"),
        ({"permission": None}, "has scope organization and permission None"),
        ({"body_type": dict}, "has a body, which a GET or DELETE must not"),
        ({"is_conditional": True}, "is conditional, which only a write can be"),
        ({"success": 204, "response_type": dict}, "has a response with a 204"),
        ({"query_type": table().routes[6].query_type}, "is a collection and not a GET that responds 200 with a list"),
    ],
)
def test_a_route_that_contradicts_itself_has_no_table(changes: dict[str, Any], fault: str) -> None:
    assert only().routes
    with pytest.raises(ValueError, match=fault):
        only(**changes)
