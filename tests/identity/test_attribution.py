"""Who pays for what was made: as the path has it, or as the service says that made it for somebody."""

from typing import Any

from msgspec.structs import replace

from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount, User, user_id
from remuda.resources.conventions import CREATOR, MODIFIER, PAYING_CREATOR, PAYING_ORGANIZATION, PAYING_PROJECT
from remuda.store.objects import Metadata
from tests.kit.identity.environment import ORGANIZATIONS, ROOT, IdentityEnvironment, expect
from tests.kit.identity.resource_api import OTHER_ORG, IdentityApi
from tests.kit.identity.users import GLOBAL, USERS, UserServices

LAB = "d0000000-0000-4000-8000-00000000000d"

Attribution = tuple[str | None, str | None, str | None, str | None]


def attribution(metadata: Metadata) -> Attribution:
    """Return whose credentials made something, for whom, and which organization and project pay for it."""
    labels, annotations = metadata.labels, metadata.annotations
    return (
        annotations.get(CREATOR),
        annotations.get(PAYING_CREATOR),
        labels.get(PAYING_ORGANIZATION),
        labels.get(PAYING_PROJECT),
    )


def robot(name: str = "robot") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"groupIDs": []}}


def person(state: str = "active") -> dict[str, Any]:
    return {"spec": {"subject": "cleo@example.com", "state": state, "groupIDs": []}}


async def test_m20_what_is_made_says_who_pays_for_it(identity: IdentityEnvironment) -> None:
    acme = await identity.organization("acme")
    ann = await identity.member("ann@example.com", acme, "administrator")
    wanted = {"metadata": {"name": "crew"}, "spec": {"roleIDs": [], "serviceAccountIDs": [], "userIDs": []}}
    made = expect(await identity.client(ann).post(f"{ORGANIZATIONS}/{acme}/groups", wanted), 201)
    group = (await identity.store.get(Group, made["metadata"]["id"])).metadata
    assert attribution(group) == ("ann@example.com", "ann@example.com", acme, None)
    project = (await identity.store.get(Project, await identity.project(acme, group.name))).metadata
    assert attribution(project) == (ROOT, ROOT, acme, None)


async def test_an_organization_pays_for_itself(identity: IdentityEnvironment) -> None:
    acme = await identity.organization("acme")
    assert attribution((await identity.store.get(Organization, acme)).metadata) == (ROOT, ROOT, acme, None)


async def test_what_takes_several_writes_says_who_pays_for_it_too_and_whoever_changes_it_does_not_pay(
    identity: IdentityEnvironment,
) -> None:
    acme, by_ann = await identity.organization("acme"), ("ann@example.com",) * 2
    ann = identity.client(await identity.member("ann@example.com", acme, "administrator"))
    bob = identity.client(await identity.member("bob@example.com", acme, "administrator"))
    users, accounts = f"{ORGANIZATIONS}/{acme}/users", f"{ORGANIZATIONS}/{acme}/serviceaccounts"
    cleo = expect(await ann.post(users, person()), 201)["metadata"]["id"]
    robby = expect(await ann.post(accounts, robot()), 201)["metadata"]["id"]

    async def check() -> None:
        membership = (await identity.store.get(OrganizationUser, cleo)).metadata
        account = (await identity.store.get(ServiceAccount, robby)).metadata
        user = (await identity.store.get(User, user_id("cleo@example.com"))).metadata
        for each in (membership, account, user):
            assert attribution(each) == (*by_ann, acme, None)

    await check()
    expect(await bob.put(f"{users}/{cleo}", person("suspended")), 200)
    expect(await bob.put(f"{accounts}/{robby}", robot("renamed")), 200)
    expect(await bob.post(f"{accounts}/{robby}/rotate"), 200)
    modified = (await identity.store.get(ServiceAccount, robby)).metadata.annotations[MODIFIER]
    assert modified == "bob@example.com", "somebody else has changed it"
    await check()


async def test_m20_who_pays_is_whom_the_service_says_that_made_it(users_api: IdentityApi[UserServices]) -> None:
    onboarding = replace(
        GLOBAL,
        subject="onboarding",
        type="system",
        service="onboarding",
        actor="dan@example.com",
        organization=OTHER_ORG,
        project=LAB,
    )
    cleo = expect(await users_api.ask(onboarding).post(USERS, person()), 201)["metadata"]["id"]
    membership = (await users_api.store.get(OrganizationUser, cleo)).metadata
    assert attribution(membership) == ("onboarding", "dan@example.com", OTHER_ORG, LAB)
