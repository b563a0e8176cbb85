"""Proofs of the sagas that create and update users and service accounts."""

from collections.abc import Mapping

from remuda.access.principal import requester_of
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import Group, GroupSpec, OrganizationUser, ServiceAccount, User
from remuda.identity.users.rules import Member, membership_of, new_account, new_membership, new_user, with_member
from remuda.identity.users.sagas import (
    CREATE_ACCOUNT,
    CREATE_USER,
    UPDATE_ACCOUNT,
    UPDATE_USER,
    AccountInput,
    UserInput,
    UserPorts,
)
from remuda.kernel.tags import Tag
from remuda.resources.conventions import DESCRIPTION, MODIFIER, NAME
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from tests.kit.identity.resource_api import ORG, registry
from tests.kit.identity.users import CLERK, furnish, make_group, ports_of, tokens_of
from tests.kit.proofs.sagas import Proof
from tests.kit.simulation.runner import World

ANN = Member(organization=ORG, id=membership_of(ORG, "ann@example.com"), subject="ann@example.com")
ROBOT = Member(organization=ORG, id="d0000000-0000-4000-8000-00000000000d")
ONE, TWO, THREE = (f"c0000000-0000-4000-8000-{number:012d}" for number in range(3))
NO_ROLES: Mapping[str, tuple[str, ...]] = {ONE: (), TWO: (), THREE: ()}


class Empty:
    """An organization with three groups, and nobody in them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registry: Registry = registry()

    async def prepare(self, store: Store) -> None:
        """Make the groups, and the key that signs tokens, which is no operation's to remove."""
        await furnish(store)
        await tokens_of(self.world, store).keys.all()
        for name in ("one", "two", "three"):
            await make_group(store, name)

    def ports(self, store: Store) -> UserPorts:
        """Return what the steps work on."""
        return ports_of(self.world, store)

    async def observe(self, store: Store) -> object:
        """Return everybody, and who is in which group.

        Left out are tokens, times, and who had what locked. So are the tags of global users, which nobody reads: if
        two make the same one at once, they are those of either.
        """
        return {
            "users": [each.spec.subject for each in (await store.list(User)).items],
            "memberships": [
                (each.name, each.spec.state, each.metadata.annotations.get(MODIFIER))
                for each in (await store.list(OrganizationUser)).items
            ],
            "accounts": [
                (
                    each.metadata.labels[NAME],
                    each.metadata.annotations.get(DESCRIPTION),
                    each.spec.tags,
                    each.is_deleting,
                )
                for each in (await store.list(ServiceAccount)).items
            ],
            "groups": [
                (sorted(each.spec.user_ids), sorted(s.id for s in each.spec.subjects), each.spec.service_account_ids)
                for each in (await store.list(Group)).items
            ],
        }


class Settled(Empty):
    """The same, with a user and a service account in the first group and the second."""

    async def prepare(self, store: Store) -> None:
        """Make them."""
        await super().prepare(store)
        organization = await store.get(Organization, ORG)
        await store.create(new_user(ANN.subject, (), CLERK))
        await store.create(new_membership(organization, ANN.subject, "active", CLERK, invited=False))
        issued = await tokens_of(self.world, store).issue_for_account(ROBOT.id, ORG)
        called = MetadataWrite(name="robot", description="sweeps")
        await store.create(new_account(ROBOT.id, organization, called, issued, CLERK, lock=None))
        for name in (ONE, TWO):
            await _put_into(store, name)


async def _put_into(store: Store, name: str) -> None:
    group = await store.get(Group, name)
    spec: GroupSpec = with_member(with_member(group.spec, ANN, inside=True), ROBOT, inside=True)
    await store.update(Group(metadata=group.metadata, spec=spec))


def _user(*groups: str, state: UserState = "active") -> UserInput:
    return UserInput(
        member=ANN,
        requester=requester_of(CLERK),
        groups=groups,
        granted_roles=NO_ROLES,
        state=state,
        tags=(Tag("team", state),),
    )


def _account(name: str, *groups: str) -> AccountInput:
    return AccountInput(
        member=ROBOT,
        requester=requester_of(CLERK),
        groups=groups,
        granted_roles=NO_ROLES,
        metadata=MetadataWrite(name=name),
    )


PROOFS = [
    Proof(
        saga=CREATE_USER,
        make_world=Empty,
        input=_user(ONE, TWO),
        rival=_user(TWO, THREE, state="pending"),
    ),
    Proof(
        saga=UPDATE_USER,
        make_world=Settled,
        input=_user(TWO, THREE, state="suspended"),
        rival=_user(ONE, state="pending"),
    ),
    Proof(saga=CREATE_ACCOUNT, make_world=Empty, input=_account("robot", ONE, TWO), rival=_account("other", THREE)),
    Proof(saga=UPDATE_ACCOUNT, make_world=Settled, input=_account("new", TWO, THREE), rival=_account("other", ONE)),
]
