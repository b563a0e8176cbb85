"""Who may see and do what in the example service."""

from pathlib import Path

import pytest

from tests.example.authenticator import FOREIGN_ORGANIZATION, FOREIGN_PROJECT, ORGANIZATION, OTHER_PROJECT
from tests.example.customers import MOUNTS
from tests.example.running import new_mount, new_yard, running

NOBODYS = "c0000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("admin", 200),
        ("organization-admin", 200),
        ("user", 200),
        ("reader", 200),
        ("member", 403),
        ("foreigner", 404),
        ("nobody", 404),
        (None, 401),
        ("stranger", 401),
    ],
)
async def test_who_may_read_a_mount(tmp_path: Path, token: str | None, status: int) -> None:
    async with running(tmp_path) as livery:
        mount = await livery.make_mount(await livery.make_yard())
        assert (await livery.client(token).get(f"{MOUNTS}/{mount}")).status == status


async def test_naming_what_is_foreign_is_forbidden_whether_it_exists_or_not(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        client = livery.client("user")
        for organization, project in [
            (FOREIGN_ORGANIZATION, FOREIGN_PROJECT),
            (NOBODYS, NOBODYS),
            (ORGANIZATION, OTHER_PROJECT),
        ]:
            path = f"/api/v1/organizations/{organization}/projects/{project}/yards"
            assert (await client.get(path)).status == 403
            assert (await client.get(f"{path}/{NOBODYS}")).status == 403
        for query in ({"organizationID": FOREIGN_ORGANIZATION}, {"projectID": FOREIGN_PROJECT}, {"projectID": NOBODYS}):
            assert (await client.get(MOUNTS, query)).status == 403
        assert (await client.post(MOUNTS, new_mount(NOBODYS))).status == 404
        assert (await livery.client("organization-admin").get(MOUNTS, {"projectID": OTHER_PROJECT})).status == 200
        new_project = f"/api/v1/organizations/{ORGANIZATION}/projects/{NOBODYS}/yards"
        assert (await livery.client("organization-admin").post(new_project, new_yard())).status == 404


async def test_lists_show_what_the_caller_may_see_and_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path) as livery:
        yard, other = await livery.make_yard(), await livery.make_yard()
        body = new_mount(yard, "bella")
        body["metadata"]["tags"] = [{"name": "coat", "value": "bay"}]
        tagged = (await livery.client("user").post(MOUNTS, body)).json["metadata"]["id"]
        plain = await livery.make_mount(other, "cloud")

        async def seen(token: str, *query: tuple[str, str]) -> set[str]:
            reply = await livery.client(token).get(MOUNTS, query)
            assert reply.status == 200
            return {item["metadata"]["id"] for item in reply.json}

        assert await seen("reader") == {tagged, plain}
        assert await seen("member") == await seen("foreigner") == set()
        assert await seen("user", ("tag", "coat=bay")) == {tagged}
        assert await seen("user", ("yardID", yard)) == {tagged}
        assert await seen("user", ("yardID", yard), ("yardID", other)) == {tagged, plain}
        assert (await livery.client("user").get(MOUNTS, {"tag": "coat"})).status == 422
