"""Reads after a deletion: no group or project shows what was deleted. No controller runs here but where it is named."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from remuda.identity.kinds.tenancy import Project
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount
from remuda.kernel.locks import RunningWrites
from remuda.store.objects import Resource
from tests.kit.environment import options
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.simulation.runner import World, simulate

TYPES: dict[str, type[Resource]] = {"users": OrganizationUser, "serviceaccounts": ServiceAccount, "groups": Group}
KINDS = tuple(TYPES)
_MEMBERS = {"users": "userIDs", "serviceaccounts": "serviceAccountIDs", "groups": "groupIDs"}


class Scene:
    """An organization in which a user and an account are in two groups, which two projects list."""

    def __init__(self, identity: IdentityEnvironment, organization: str) -> None:
        self.root, self.home = identity.client(identity.root), f"{ORGANIZATIONS}/{organization}"
        self.groups, self.projects = list[str](), list[str]()
        self.user, self.account = "", ""

    @classmethod
    async def prepare(cls, identity: IdentityEnvironment) -> "Scene":
        organization = await identity.organization()
        self = cls(identity, organization)
        self.groups += [await identity.group(organization, "reader", name=name) for name in ("one", "two")]
        self.user = await identity.user("ann@example.com", organization, *self.groups)
        self.account = (await identity.account(organization, *self.groups)).id
        self.projects += [await identity.project(organization, *self.groups, name=name) for name in ("a", "b")]
        return self

    async def delete(self, kind: str, status: int) -> None:
        """Delete the object of this kind; 200 stands for every success."""
        reply = await self.root.delete(f"{self.home}/{kind}/{self.deleted(kind)}")
        assert (200 if reply.status < 300 else reply.status) == status

    def naming(self, kind: str, *names: str) -> dict[str, Any]:
        """Return a request for a referrer that names these objects."""
        spec: dict[str, Any] = (
            {"groupIDs": []} if kind == "groups" else {"roleIDs": [], "serviceAccountIDs": [], "userIDs": []}
        )
        return {"metadata": {"name": "named"}, "spec": spec | {_MEMBERS[kind]: names}}

    def deleted(self, kind: str) -> str:
        return {"users": self.user, "serviceaccounts": self.account, "groups": self.groups[0]}[kind]

    def referrers(self, kind: str) -> list[str]:
        return (
            [f"projects/{each}" for each in self.projects]
            if kind == "groups"
            else [f"groups/{each}" for each in self.groups]
        )

    async def shown(self, kind: str) -> list[str]:
        """Return everything that shows the object of this kind, in single reads and in lists."""
        found, wanted = [], self.deleted(kind)
        plural = "projects" if kind == "groups" else "groups"
        for path in self.referrers(kind):
            spec = expect(await self.root.get(f"{self.home}/{path}"), 200)["spec"]
            if wanted in spec[_MEMBERS[kind]] or (kind == "users" and spec["subjects"]):
                found.append(path)
        listed = expect(await self.root.get(f"{self.home}/{plural}"), 200)
        return found + [plural for each in listed if wanted in each["spec"][_MEMBERS[kind]]]


@pytest.mark.parametrize("kind", KINDS)
@options(is_quiet=True)
async def test_what_was_deleted_is_in_no_group_and_no_project(identity: IdentityEnvironment, kind: str) -> None:
    scene = await Scene.prepare(identity)
    assert len(await scene.shown(kind)) == 4
    await scene.delete(kind, 200)
    assert await scene.shown(kind) == []
    await scene.delete(kind, 404)


@pytest.mark.parametrize("kind", KINDS)
@options(is_quiet=True)
async def test_a_deletion_that_crashed_half_way_is_completed_before_its_repetition_is_responded_to(
    identity: IdentityEnvironment, kind: str
) -> None:
    scene = await Scene.prepare(identity)
    type_, name = TYPES[kind], scene.deleted(kind)
    found = await identity.store.get(type_, name)
    await identity.store.delete(type_, name, uid=found.uid)  # and the process crashed
    assert len(await scene.shown(kind)) == 4
    await scene.delete(kind, 404)
    assert await scene.shown(kind) == []


def delay_writes(identity: IdentityEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have time pass between the validation of a group or project and its write."""
    store, clock = identity.store, identity.clock

    def delayed(write: Callable[..., Coroutine[Any, Any, Resource]]) -> Callable[..., Coroutine[Any, Any, Resource]]:
        async def write_later(resource: Resource, **options: Any) -> Resource:
            if isinstance(resource, Group | Project):
                await clock.sleep(0.02)
            return await write(resource, **options)

        return write_later

    for verb in ("create", "update"):
        monkeypatch.setattr(store, verb, delayed(getattr(store, verb)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("number", range(8))
@options(lambda number: {"seed": number}, is_quiet=True)
async def test_a_write_that_runs_beside_a_deletion_does_not_bring_back_what_was_deleted(
    identity: IdentityEnvironment, kind: str, method: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = await Scene.prepare(identity)
    for each in scene.referrers(kind):
        await scene.root.put(f"{scene.home}/{each}", scene.naming(kind))
    plural = "projects" if kind == "groups" else "groups"
    paths = {"POST": [plural] * 3, "PUT": scene.referrers(kind)}[method]

    async def delete() -> list[str]:
        await identity.clock.sleep(number / 200)
        await scene.delete(kind, 200)
        return await scene.shown(kind)

    body = scene.naming(kind, scene.deleted(kind))
    delay_writes(identity, monkeypatch)
    writes = [scene.root.send(method, f"{scene.home}/{path}", body=body) for path in paths]
    shown, replies = await asyncio.gather(delete(), asyncio.gather(*writes))
    assert shown == []
    assert await scene.shown(kind) == []
    assert {each.status for each in replies} <= {200, 201, 202, 400, 409}


@options(is_quiet=True)
async def test_a_user_that_an_operation_adds_to_groups_while_it_is_deleted_is_in_none(
    identity: IdentityEnvironment,
) -> None:
    scene = await Scene.prepare(identity)
    home = f"{scene.home}/users"

    async def is_in_a_group(user: str) -> bool:
        groups = expect(await scene.root.get(f"{scene.home}/groups"), 200)
        return any(user in each["spec"]["userIDs"] for each in groups)

    async def delete(user: str, after_s: float) -> bool:
        await identity.clock.sleep(after_s)
        expect(await scene.root.delete(f"{home}/{user}"), 200)
        return await is_in_a_group(user)

    for number in range(12):
        spec = {"subject": "bob@example.com", "state": "active", "groupIDs": scene.groups}
        bob = expect(await scene.root.post(home, {"spec": spec | {"groupIDs": []}}), 201)["metadata"]["id"]
        joining = scene.root.put(f"{home}/{bob}", {"spec": spec})
        is_shown, reply = await asyncio.gather(delete(bob, number / 2000), joining)
        assert not is_shown, (number, reply.status)
        assert not await is_in_a_group(bob), (number, reply.status)


def test_running_writes_are_waited_for_and_later_ones_are_not() -> None:
    async def scenario(world: World) -> None:
        writes, order = RunningWrites(), list[str]()

        async def write(name: str, seconds: float) -> None:
            with writes.add("acme"):
                await world.clock.sleep(seconds)
                order.append(name)

        async def wait() -> None:
            await world.clock.sleep(1)
            await writes.wait("apex")
            order.append("other")
            await writes.wait("acme")
            order.append("waited")

        async def write_later() -> None:
            await world.clock.sleep(2)
            await write("late", 10)

        await asyncio.gather(write("first", 3), write("second", 5), wait(), write_later())
        assert order == ["other", "first", "second", "waited", "late"]

    simulate(scenario, 1)
