"""Responses that one tenant gets do not depend on what another tenant does."""

import asyncio

from tests.kit.proofs.authorization.region_subject import be_generous
from tests.kit.proofs.authorization.tenants import Diary, Intruder, Tenant
from tests.kit.region.environment import RegionEnvironment, run_region

SEEDS = tuple(range(6))
STEPS = 25
SETTLE_S = 60
"""After so long everything is at rest."""


async def _play(region: RegionEnvironment, diary: Diary, seed: int, *, with_intruder: bool) -> None:
    identity = region.identity
    elsewhere = await identity.organization("elsewhere")
    project = await identity.project(elsewhere)
    for organization in (region.organization, elsewhere):
        await be_generous(region, organization)
    ann = region.client(await identity.member("ann@example.com", region.organization, "administrator"))
    bob = region.client(await identity.member("bob@example.com", elsewhere, "administrator"))
    tenant = Tenant(ann, seed, region.organization, region.project)
    intruder = Intruder(bob, seed, elsewhere, project, victim=tenant)
    for step in range(STEPS):
        async with asyncio.TaskGroup() as group:
            acting = group.create_task(tenant.act(f"key-{step}"))
            if with_intruder:
                group.create_task(intruder.intrude(f"key-{step}"))
        diary.write(*acting.result())
        await region.clock.sleep(SETTLE_S)


def test_a_tenant_is_told_the_same_whether_or_not_another_is_there() -> None:
    alone, together = Diary(), Diary()
    for seed in SEEDS:
        run_region(lambda region, seed=seed: _play(region, alone, seed, with_intruder=False), seed=seed)  # type: ignore[misc]
        run_region(lambda region, seed=seed: _play(region, together, seed, with_intruder=True), seed=seed)  # type: ignore[misc]
        assert together.lines == alone.lines, f"seed {seed}"
    lines = "\n".join(alone.lines)
    statuses = (200, 201, 202, 400, 404, 422)
    assert all(f" {status} " in lines for status in statuses), "the tenant got responses of all sorts"
