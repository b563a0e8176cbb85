"""The house that other tests live in: everybody gets in, and is who they are."""

from pathlib import Path

from tests.kit.identity.launch import LOOKER, ORGANIZATIONS, House, in_a_house, running, told


async def _everybody_gets_in(house: House) -> None:
    acme = await house.organization("acme")
    ann = await house.member("ann@example.com", acme, "administrator")
    group = await house.group(acme, "user", users=["ann@example.com"])
    project = await house.project(acme, group)
    robot = await house.account(acme, group)
    found = f"{ORGANIZATIONS}/{acme}/projects/{project}"
    for token in (house.root, ann, robot.token, await house.log_in(LOOKER)):
        assert told(await house.client(token).get(found), 200)["metadata"]["id"] == project
    assert told(await house.service("unikorn-region", actor="ann@example.com").get(found), 200)
    assert told(await house.client(await house.service_token("uni-storage")).get(found), 200)
    assert told(await house.client(await house.log_in("eve@example.com")).get(found), 403)
    assert told(await house.client().get(found), 401)


async def test_everybody_gets_in_in_real_time(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        await _everybody_gets_in(house)


def test_m27_everybody_gets_in_in_simulated_time() -> None:
    in_a_house(_everybody_gets_in)
