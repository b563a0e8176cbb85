"""What holds when several have to do with the same user, service account or group at once; and after them."""

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar, cast

import pytest

from remuda.access.principal import Context
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount, User, user_id
from remuda.identity.references import OrganizationReferences
from remuda.identity.users.controller import GroupController
from remuda.identity.users.memberships import Memberships, lock_and_change
from remuda.identity.users.rules import Member, is_in, membership_of
from remuda.identity.users.schema import AccountSpecWire, AccountWrite, UserSpecWire, UserWrite
from remuda.kernel.errors import Conflict, Malformed, ResponseNotStored
from remuda.operations.kinds import Operation, OperationSpec
from remuda.reconcile.results import ReconcileContext
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.objects import Metadata, Resource
from tests.kit.environment import options
from tests.kit.forwarding_store import Passing
from tests.kit.identity.resource_api import ORG, IdentityApi
from tests.kit.identity.users import (
    ACCOUNTS,
    CLERK,
    GROUPS,
    READER,
    USERS,
    UserServices,
    administrator,
    crew,
    make_group,
    rejection,
    robot,
    service,
    tidying,
    told,
    user,
)
from tests.kit.proofs.effects import Recorder

ResultT = TypeVar("ResultT")

OPERATION = "e0000000-0000-4000-8000-00000000000e"
OTHER_OPERATION = "e0000000-0000-4000-8000-0000000000ee"
ANN = Member(organization=ORG, id=membership_of(ORG, "ann@example.com"), subject="ann@example.com")


async def open_operation(api: IdentityApi[UserServices]) -> None:
    """Leave an operation open, as a process that died does."""
    deadline = api.world.clock.now() + timedelta(minutes=1)
    spec = OperationSpec(
        saga="user.update", subject_kind="", subject="", actor="", input="{}", deadline=deadline, process="another"
    )
    await api.store.create(Operation(metadata=Metadata(name=OPERATION), spec=spec))


async def close_operation(store: Store) -> None:
    """Close it as done."""
    await store.update_status((await store.get(Operation, OPERATION)).moved("done"))


async def test_what_another_operation_has_locked_cannot_be_changed_until_that_is_closed(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    ann = f"{USERS}/{told(await clerk.post(USERS, user('ann@example.com')), 201)['metadata']['id']}"
    robby = told(await clerk.post(ACCOUNTS, robot()), 201)["metadata"]["id"]
    await open_operation(users_api)
    await lock_and_change(users_api.store, OrganizationUser, ANN.id, OPERATION)
    await lock_and_change(users_api.store, ServiceAccount, robby, OPERATION)
    assert rejection(await clerk.put(ann, user("ann@example.com", state="suspended")), 409)
    assert rejection(await clerk.post(USERS, user("ann@example.com")), 409)
    assert rejection(await clerk.put(f"{ACCOUNTS}/{robby}", robot(name="renamed")), 409)
    assert [each["spec"]["state"] for each in told(await clerk.get(USERS), 200)] == ["active"]
    await close_operation(users_api.store)
    told(await clerk.put(ann, user("ann@example.com", state="suspended")), 200)
    told(await clerk.put(f"{ACCOUNTS}/{robby}", robot(name="renamed")), 200)


async def test_nobody_comes_into_a_group_whose_roles_are_not_those_that_were_validated(
    users_api: IdentityApi[UserServices],
) -> None:
    told(await users_api.ask(CLERK).post(USERS, user("ann@example.com")), 201)
    changed, removed = await make_group(users_api.store, "one", READER), await make_group(users_api.store, "two")
    joining = Memberships(OrganizationReferences(users_api.store))
    for group in (changed, removed):  # its roles were others; or it was in there already, and nobody validated them
        with pytest.raises(Conflict):
            await joining.update(OPERATION, ANN, [group], granted_roles={changed: ()})
        assert not is_in(await users_api.store.get(Group, group), ANN)
    with pytest.raises(Malformed, match="does not exist"):
        await joining.update(OPERATION, ANN, [OPERATION], granted_roles={OPERATION: ()})


async def test_what_somebody_says_of_a_group_meanwhile_is_not_undone_with_an_operation(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    told(await clerk.post(USERS, user("ann@example.com")), 201)
    bob = told(await clerk.post(USERS, user("bob@example.com")), 201)["metadata"]["id"]
    confirmed, emptied, left = [await make_group(users_api.store, name) for name in ("a", "b", "c")]
    joining, validated = Memberships(OrganizationReferences(users_api.store)), {confirmed: (), emptied: (), left: ()}
    await open_operation(users_api)
    await joining.update(OPERATION, ANN, [confirmed, emptied, left], granted_roles=validated)
    told(await clerk.put(f"{GROUPS}/{confirmed}", crew(userIDs=[ANN.id, bob])), 200)
    told(await clerk.put(f"{GROUPS}/{emptied}", crew()), 200)
    await joining.restore(OPERATION, ANN)
    await joining.restore(OPERATION, ANN)
    users = [(await users_api.store.get(Group, each)).spec.user_ids for each in (confirmed, emptied, left)]
    assert users == [(ANN.id, bob), (), ()]


async def test_who_was_deleted_since_is_not_brought_back_with_an_operation_that_is_undone(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    told(await clerk.post(USERS, user("ann@example.com", group)), 201)
    joining = Memberships(OrganizationReferences(users_api.store))
    await open_operation(users_api)
    await joining.update(OPERATION, ANN, [], granted_roles={})
    told(await clerk.delete(f"{USERS}/{ANN.id}"), 200)
    await joining.restore(OPERATION, ANN)
    left = (await users_api.store.get(Group, group)).spec
    assert (left.user_ids, left.subjects, left.member_changes) == ((), (), ())


async def test_marks_are_forgotten_when_their_operations_are_closed(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    for number in range(4):
        told(await clerk.post(USERS, user(f"user{number}@example.com", group)), 201)
    assert len((await users_api.store.get(Group, group)).spec.member_changes) == 1
    assert len((await users_api.store.get(Group, group)).spec.user_ids) == 4


async def test_a_user_whose_maker_is_done_is_not_written_again(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    told(await clerk.post(USERS, user("ann@example.com")), 201)
    found = await users_api.store.get(User, user_id("ann@example.com"))
    assert len(found.spec.creators) == 1
    told(await clerk.post(USERS, user("ann@example.com")), 201)
    assert (await users_api.store.get(User, found.name)).version == found.version


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@options(lambda recorder: {"make": lambda world, store: service(world, recorder.store(store))})
async def test_a_request_has_one_effect_or_is_an_operation(
    users_api: IdentityApi[UserServices], recorder: Recorder
) -> None:
    recorder.effects.clear()
    clerk = dataclasses.replace(users_api.ask(CLERK), app=recorder.app(users_api.app))
    admin = dataclasses.replace(users_api.ask(await administrator(users_api.store)), app=recorder.app(users_api.app))
    one, two = await make_group(users_api.store, "one"), await make_group(users_api.store, "two")
    ann = f"{USERS}/{told(await clerk.post(USERS, user('ann@example.com', one, two)), 201)['metadata']['id']}"
    told(await clerk.put(ann, user("ann@example.com", two, state="suspended")), 200)
    robby = f"{ACCOUNTS}/{told(await clerk.post(ACCOUNTS, robot(one)), 201)['metadata']['id']}"
    told(await clerk.put(robby, robot(two)), 200)
    told(await clerk.post(f"{robby}/rotate"), 200)
    made = f"{GROUPS}/{told(await admin.post(GROUPS, crew(READER)), 201)['metadata']['id']}"
    told(await admin.put(made, crew()), 200)
    for path in (ann, robby, made):
        told(await admin.delete(path), 200)
    loose = [effect.what for effect in recorder.effects if effect.request and not effect.operation]
    assert len(loose) == 6, loose


@options(seeds=5)
async def test_tidying_up_finds_what_is_there_at_the_start_and_writes_nothing_more_when_it_is_done(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk, store = users_api.ask(CLERK), users_api.store
    group = await make_group(store, "crew")
    ann = told(await clerk.post(USERS, user("ann@example.com", group)), 201)["metadata"]["id"]
    robby = told(await clerk.post(ACCOUNTS, robot(group)), 201)["metadata"]["id"]
    kept = told(await clerk.post(ACCOUNTS, robot(group)), 201)["metadata"]["id"]
    told(await clerk.delete(f"{USERS}/{ann}"), 200)
    told(await clerk.delete(f"{ACCOUNTS}/{robby}"), 200)
    async with tidying(users_api) as tidied:
        await tidied()
    left = await store.get(Group, group)
    assert (left.spec.user_ids, left.spec.subjects, left.spec.service_account_ids) == ((), (), (kept,))
    version = (await store.list(Group)).version
    async with tidying(users_api) as tidied:
        await tidied()
    assert (await store.list(Group)).version == version


class _Late(Passing):
    """A store in which somebody acts before a group is written."""

    def __init__(self, inner: Store, act: Callable[[], Awaitable[object]]) -> None:
        super().__init__(inner)
        self._act = act

    async def around(self, verb: str, what: Resource | None, write: Callable[[], Awaitable[ResultT]]) -> ResultT:
        if verb == "update" and isinstance(what, Group):
            await self._act()
        return await super().around(verb, what, write)


class _Emptied(Passing):
    """A store in which somebody removes every user and service account as soon as an operation is done."""

    async def around(self, verb: str, what: Resource | None, write: Callable[[], Awaitable[ResultT]]) -> ResultT:
        written = await super().around(verb, what, write)
        if isinstance(what, Operation) and what.phase == "done":
            for kind in (OrganizationUser, ServiceAccount):
                for each in (await self.inner.list(kind)).items:
                    await self.inner.delete(kind, each.name, uid=each.uid)
        return written


@options(lambda: {"make": lambda world, store: service(world, cast("Store", _Emptied(store)))})
async def test_who_is_removed_again_at_once_was_made_or_changed_all_the_same(
    users_api: IdentityApi[UserServices],
) -> None:
    emptied, plain = users_api.ask(CLERK), service(users_api.world, users_api.store)
    group = await make_group(users_api.store, "crew")
    made = told(await emptied.post(USERS, user("ann@example.com", group)), 201)
    assert (made["metadata"]["id"], made["spec"]["groupIDs"]) == (ANN.id, [group])
    rejection(await emptied.put(f"{USERS}/{ANN.id}", user("ann@example.com")), 404)
    wanted = UserWrite(spec=UserSpecWire(subject="ann@example.com", state="active", group_ids=()))
    await plain.users.create(Context(principal=CLERK, operation=OPERATION), ORG, wanted)
    changed = told(await emptied.put(f"{USERS}/{ANN.id}", user("ann@example.com", group, state="suspended")), 200)
    assert (changed["spec"]["state"], changed["spec"]["groupIDs"]) == ("suspended", [group])
    robby = told(await emptied.post(ACCOUNTS, robot(group)), 201)
    assert (robby["spec"]["groupIDs"], bool(robby["status"]["accessToken"])) == ([group], True)
    called = AccountWrite(metadata=MetadataWrite(name="robot"), spec=AccountSpecWire(group_ids=()))
    kept = await plain.accounts.create(Context(principal=CLERK, operation=OTHER_OPERATION), ORG, called)
    renamed = told(await emptied.put(f"{ACCOUNTS}/{kept.metadata.id}", robot(group, name="renamed")), 200)
    assert (renamed["metadata"]["name"], renamed["spec"]["groupIDs"]) == ("renamed", [group])


async def test_a_request_that_was_done_and_whose_user_is_gone_since_is_not_told_that_there_is_none(
    users_api: IdentityApi[UserServices],
) -> None:
    users, context = users_api.service.users, Context(principal=CLERK, operation=OPERATION)
    wanted = UserWrite(spec=UserSpecWire(subject="ann@example.com", state="active", group_ids=()))
    made = await users.create(context, ORG, wanted)
    assert await users.create(context, ORG, wanted) == made
    told(await users_api.ask(CLERK).delete(f"{USERS}/{ANN.id}"), 200)
    with pytest.raises(ResponseNotStored):
        await users.create(context, ORG, wanted)
    assert not (await users_api.store.list(OrganizationUser)).items


async def test_who_comes_back_while_a_group_is_tidied_up_is_not_tidied_away(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")

    async def come() -> None:
        told(await clerk.post(USERS, user("ann@example.com", group)), 201)

    await come()
    membership = await users_api.store.get(OrganizationUser, ANN.id)
    await users_api.store.delete(OrganizationUser, ANN.id, uid=membership.uid)  # and the process crashed
    late = GroupController(store=_Late(users_api.store, come))
    run = ReconcileContext(
        controller="",
        key=group,
        cause="event",
        registry=users_api.store.registry,
        randomness=users_api.world.randomness,
    )
    with pytest.raises(Conflict):
        await late(group, run)
    assert is_in(await users_api.store.get(Group, group), ANN)


@options(seeds=1)
async def test_a_large_group_is_tidied_up_too(users_api: IdentityApi[UserServices]) -> None:
    clerk, store = users_api.ask(CLERK), users_api.store
    group = await make_group(store, "crew")
    for number in range(102):
        told(await clerk.post(USERS, user(f"user{number}@example.com", group)), 201)
    async with tidying(users_api) as tidied:
        told(await clerk.delete(f"{USERS}/{membership_of(ORG, 'user7@example.com')}"), 200)
        await tidied()
    left = (await store.get(Group, group)).spec
    assert len(left.user_ids) == len(left.subjects) == 101
    assert "user7@example.com" not in [each.id for each in left.subjects]


@options(seeds=5)
async def test_subjects_of_other_issuers_are_nobody_whom_tidying_up_looks_for(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    told(await clerk.post(USERS, user("ann@example.com")), 201)
    outsider = {"id": "ann@example.com", "issuer": "https://other.example.com"}
    subjects = [{"id": "ann@example.com", "issuer": LOCAL_ISSUER}, outsider]
    path = f"{GROUPS}/{told(await clerk.post(GROUPS, crew(subjects=subjects)), 201)['metadata']['id']}"
    async with tidying(users_api) as tidied:
        told(await clerk.delete(f"{USERS}/{ANN.id}"), 200)
        await tidied()
    assert told(await clerk.get(path), 200)["spec"]["subjects"] == [outsider]
