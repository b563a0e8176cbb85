"""The environment that other tests live in: everybody gets in, and is who they are."""

from pathlib import Path

from tests.kit.identity.environment import LOOKER, ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.launch import run_identity, running


async def _everybody_gets_in(identity: IdentityEnvironment) -> None:
    acme = await identity.organization("acme")
    ann = await identity.member("ann@example.com", acme, "administrator")
    group = await identity.group(acme, "user", users=["ann@example.com"])
    project = await identity.project(acme, group)
    robot = await identity.account(acme, group)
    found = f"{ORGANIZATIONS}/{acme}/projects/{project}"
    for token in (identity.root, ann, robot.token, await identity.log_in(LOOKER)):
        assert expect(await identity.client(token).get(found), 200)["metadata"]["id"] == project
    assert expect(await identity.service("unikorn-region", actor="ann@example.com").get(found), 200)
    assert expect(await identity.client(await identity.service_token("uni-storage")).get(found), 200)
    assert expect(await identity.client(await identity.log_in("eve@example.com")).get(found), 403)
    assert expect(await identity.client().get(found), 401)


async def test_everybody_gets_in_in_real_time(tmp_path: Path) -> None:
    async with running(tmp_path) as identity:
        await _everybody_gets_in(identity)


def test_m27_everybody_gets_in_in_simulated_time() -> None:
    run_identity(_everybody_gets_in)
