"""Who pays for what was made: as the path has it, or as the service says that made it for somebody."""

from remuda.identity.kinds.people import Group
from remuda.identity.kinds.tenancy import Project
from remuda.resources.labels import CREATOR, PAYING_CREATOR, PAYING_ORGANIZATION, PAYING_PROJECT
from tests.identity.house import ORGANIZATIONS, House, in_a_house, told


def test_what_is_made_says_who_pays_for_it() -> None:
    async def scenario(house: House) -> None:
        acme = await house.organization("acme")
        ann = await house.member("ann@example.com", acme, "administrator")
        wanted = {"metadata": {"name": "crew"}, "spec": {"roleIDs": [], "serviceAccountIDs": [], "userIDs": []}}
        made = told(await house.client(ann).post(f"{ORGANIZATIONS}/{acme}/groups", wanted), 201)
        group = (await house.store.get(Group, made["metadata"]["id"])).metadata
        assert (group.labels[PAYING_ORGANIZATION], group.annotations[PAYING_CREATOR]) == (acme, "ann@example.com")
        assert PAYING_PROJECT not in group.labels
        project = (await house.store.get(Project, await house.project(acme, group.name))).metadata
        assert project.labels[PAYING_ORGANIZATION] == acme
        assert project.annotations[CREATOR] == project.annotations[PAYING_CREATOR]

    in_a_house(scenario)
