"""Addresses of consoles end with the permissions of whoever opened them, and with what they show."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from remuda.app.console_sessions import ConsoleSessions
from remuda.compute.kinds import ComputeInstance
from remuda.identity.kinds.factors import SecondFactors, SecondFactorsSpec
from remuda.identity.kinds.oauth import Password
from remuda.identity.kinds.users import Group, OrganizationUser, Suspension, User, user_id
from remuda.identity.rbac.actors import Actors
from remuda.identity.rbac.roles import role_id
from remuda.resources.conventions import NAME, USER
from remuda.store.objects import Metadata
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, settle
from tests.kit.environment import options
from tests.kit.identity.environment import ORGANIZATIONS, expect

ANN = "ann@example.com"


async def _is_open(compute: ComputeEnvironment, url: str) -> bool:
    permissions = compute.region.identity.app.services.permissions
    sessions = ConsoleSessions(store=compute.store, actors=Actors(store=compute.store, permissions=permissions))
    (token,) = parse_qs(urlsplit(url).query)["token"]
    return await sessions.is_permitted(compute.region.north.consoles.session_of_token(token))


async def _opened(compute: ComputeEnvironment, tenant: Tenant) -> tuple[str, str]:
    """Return an instance and the address of its console."""
    instance = str(expect(await tenant.client.post("/api/v2/instances", tenant.wanted(compute)), 201)["metadata"]["id"])
    await compute.until(instance, "provisioned")
    return instance, str(expect(await tenant.client.get(at(instance, "consolesession")), 200)["url"])


async def _group(compute: ComputeEnvironment) -> Group:
    return next(each for each in (await compute.store.list(Group)).items if each.metadata.labels[NAME] == "anns")


async def _lose_role(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    group = await _group(compute)
    await compute.store.update(replace(group, spec=replace(group.spec, role_ids=(role_id("reader"),))))


async def _lose_group(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    root = compute.region.identity.client(compute.region.identity.root)
    path = f"{ORGANIZATIONS}/{compute.region.organization}/groups/{(await _group(compute)).name}"
    assert (await root.delete(path)).status in {200, 202}


async def _leave_group(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    group = await _group(compute)
    await compute.store.update(replace(group, spec=replace(group.spec, user_ids=(), subjects=())))


async def _lose_membership(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    (membership,) = (await compute.store.list(OrganizationUser, labels={USER: user_id(ANN)})).items
    root = compute.region.identity.client(compute.region.identity.root)
    path = f"{ORGANIZATIONS}/{compute.region.organization}/users/{membership.name}"
    assert (await root.delete(path)).status in {200, 202}


async def _be_deleted(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    user = await compute.store.get(User, user_id(ANN))
    await compute.store.delete(User, user.name, uid=user.uid)


async def _be_suspended(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    user = await compute.store.get(User, user_id(ANN))
    spec = replace(user.spec, suspension=Suspension(since=compute.clock.now()))
    await compute.store.update(replace(user, spec=spec))


async def _change_password(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    await compute.clock.sleep(1)
    await compute.region.identity.local(ANN, "correct horse battery staple")
    assert (await compute.store.get(Password, user_id(ANN))).spec.changed is not None


async def _lose_factor(compute: ComputeEnvironment, _tenant: Tenant) -> None:
    spec = SecondFactorsSpec(reset=compute.clock.now() + timedelta(seconds=1))
    await compute.store.create(SecondFactors(metadata=Metadata(name=user_id(ANN)), spec=spec))


async def _lose_project(compute: ComputeEnvironment, tenant: Tenant) -> None:
    root = compute.region.identity.client(compute.region.identity.root)
    path = f"{ORGANIZATIONS}/{compute.region.organization}/projects/{tenant.project}"
    assert (await root.delete(path)).status == 202


@pytest.mark.parametrize(
    "lose",
    [
        _lose_role,
        _lose_group,
        _leave_group,
        _lose_membership,
        _be_deleted,
        _be_suspended,
        _change_password,
        _lose_factor,
        _lose_project,
    ],
)
@options(is_instant=True)
async def test_m27_the_address_of_a_console_ends_with_what_its_viewer_was_permitted_it_by(
    compute: ComputeEnvironment, lose: Callable[[ComputeEnvironment, Tenant], Awaitable[None]]
) -> None:
    tenant = await settle(compute)
    _, url = await _opened(compute, tenant)
    assert await _is_open(compute, url)
    await lose(compute, tenant)
    assert not await _is_open(compute, url)


@options(is_instant=True)
async def test_m27_the_address_of_a_console_ends_when_the_deletion_of_its_instance_is_requested(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance, url = await _opened(compute, tenant)
    found = await compute.store.get(ComputeInstance, instance)
    await compute.store.delete(ComputeInstance, instance, uid=found.uid)
    assert not await _is_open(compute, url)


@options(is_instant=True)
async def test_m27_the_address_of_a_console_ends_with_the_service_account_that_opened_it(
    compute: ComputeEnvironment,
) -> None:
    identity, organization = compute.region.identity, compute.region.organization
    tenant = await settle(compute)
    account = await identity.account(organization, (await _group(compute)).name)
    robot = Tenant(compute.client(account.token), tenant.project, tenant.network)
    _, url = await _opened(compute, robot)
    assert await _is_open(compute, url)
    path = f"{ORGANIZATIONS}/{organization}/serviceaccounts/{account.id}"
    assert (await identity.client(identity.root).delete(path)).status in {200, 202}
    assert not await _is_open(compute, url)


@options(is_instant=True)
async def test_m27_the_address_of_a_console_outlives_the_loss_of_other_permissions(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    _, url = await _opened(compute, tenant)
    other = await compute.region.identity.organization("other")
    await compute.region.identity.user(ANN, other)
    assert await _is_open(compute, url)
