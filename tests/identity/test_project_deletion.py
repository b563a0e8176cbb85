"""A project goes only when nothing can be held in it any more, whoever takes something in it at that very moment."""

import asyncio
from typing import Any

import pytest

from remuda.identity.kinds.quotas import Allocation
from remuda.identity.kinds.tenancy import Project
from remuda.identity.quotas.writer import ProjectCloser
from remuda.resources.conventions import PROJECT
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment
from tests.kit.identity.launch import run_identity

SEEDS = 30


def wanted(owner: str) -> dict[str, Any]:
    held = [{"kind": "servers", "committed": 1, "reserved": 0}]
    return {"metadata": {"name": owner}, "spec": {"kind": "instances.test", "id": owner, "allocations": held}}


async def take_while_it_goes(identity: IdentityEnvironment) -> None:
    """Ask for a project to go, and for something in it at about the same time."""
    root, chance = identity.client(identity.root), identity.app.ports.randomness
    acme = await identity.organization()
    lab = await identity.project(acme)
    path = f"{ORGANIZATIONS}/{acme}/projects/{lab}"

    async def take(owner: str) -> int:
        await identity.clock.sleep(chance.uniform(0, 0.2))
        return (await root.post(f"{path}/allocations", wanted(owner))).status

    async def give_up() -> int:
        return (await root.delete(path)).status

    deleted, *taken = await asyncio.gather(give_up(), *[take(f"owner-{each}") for each in range(6)])
    assert deleted == 202
    assert set(taken) <= {201, 404}
    await identity.clock.sleep(60)
    projects = {each.name for each in (await identity.store.list(Project)).items}
    rows = [each for each in (await identity.store.list(Allocation)).items if each.spec.state != "released"]
    assert len(rows) == taken.count(201)
    assert {each.metadata.labels[PROJECT] for each in rows} <= projects
    assert (lab in projects) == bool(rows), "it stays exactly while something is held in it"
    for row in rows:
        assert (await root.delete(f"{path}/allocations/{row.name}")).status == 202
    await identity.clock.sleep(60)
    assert (await root.get(path)).status == 404


def test_whoever_takes_something_in_a_project_that_goes_keeps_it_or_is_told_that_it_is_gone() -> None:
    for seed in range(SEEDS):
        run_identity(take_while_it_goes, seed=seed)


def test_a_look_at_the_rows_alone_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_closed(*_: object) -> bool:
        return True

    monkeypatch.setattr(ProjectCloser, "close", is_closed)
    with pytest.raises(AssertionError, match="seed"):
        test_whoever_takes_something_in_a_project_that_goes_keeps_it_or_is_told_that_it_is_gone()
