"""The power goes at any moment of an organization's life: what was acknowledged is kept, and nothing is left over."""

from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import apsw
from structlog.testing import capture_logs

from remuda.access.principal import Context
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import Domain, Organization, Project
from remuda.identity.tenancy import schema
from remuda.kernel.errors import RemudaError
from remuda.resources.schema import MetadataWrite
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.identity.tenancy import (
    ABSENT,
    ORGANIZATIONS,
    PLATFORM,
    PLATFORM_PROVIDER,
    TenancyApi,
    make_organization,
    make_platform_provider,
    project,
    provider,
    with_domain,
)
from tests.kit.identity.tenancy_controllers import SERVERS, TenancyControllers, tenancy_controllers
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate

FIRST_DELETE, STEPS = 6, 8


Step = Callable[[Client, str], Awaitable[Reply]]


class Story:
    """What a customer does, one request after the other, each under its own key; it can be told again from the top."""

    def __init__(self) -> None:
        self.home = self.inside = ""
        self.told = 0
        """How many of its requests were acknowledged at most."""

    async def tell(self, tenancy: TenancyControllers) -> None:
        """Go on until the end, or until somebody says that it cannot be done now."""
        client = tenancy.api.ask(PLATFORM)
        for number, step in enumerate(self._steps()):
            reply = await step(client, f"step-{number}")
            if reply.status == 503:
                return
            is_done_before = number >= FIRST_DELETE and reply.status == 404
            assert reply.status < 300 or is_done_before, reply
            self.told = max(self.told, number + 1)
            await tenancy.world.clock.sleep(1)

    def _steps(self) -> Iterator[Step]:
        yield self._make_home
        yield self._make_project
        yield lambda client, key: client.post(f"{self._path}/oauth2providers", provider(), idempotency_key=key)
        yield lambda client, key: client.put(f"{self._path}/projects/{self.inside}", project(), idempotency_key=key)
        yield lambda client, key: client.put(self._reference, idempotency_key=key)
        yield lambda client, key: client.put(self._path, with_domain("next.example"), idempotency_key=key)
        yield lambda client, key: client.delete(self._path, idempotency_key=key)
        yield lambda client, key: client.delete(self._reference, idempotency_key=key)

    async def _make_home(self, client: Client, key: str) -> Reply:
        reply = await client.post(ORGANIZATIONS, with_domain(), idempotency_key=key)
        self.home = reply.json["metadata"]["id"] if reply.status == 202 else self.home
        return reply

    async def _make_project(self, client: Client, key: str) -> Reply:
        reply = await client.post(f"{self._path}/projects", project(), idempotency_key=key)
        self.inside = reply.json["metadata"]["id"] if reply.status == 202 else self.inside
        return reply

    @property
    def _path(self) -> str:
        return f"{ORGANIZATIONS}/{self.home}"

    @property
    def _reference(self) -> str:
        return f"{self._path}/projects/{self.inside}/references/{SERVERS}%252Fone"


async def names(tenancy: TenancyControllers) -> list[str]:
    kinds = (Organization, Project, OAuth2Provider, Domain)
    return [each.name for kind in kinds for each in (await tenancy.store.list(kind)).items]


async def check_kept(tenancy: TenancyControllers, story: Story) -> None:
    """What was acknowledged is there. What was asked next may be as well: nobody knows."""
    if story.told >= STEPS - 1:
        return
    if story.told >= 1:
        home = await tenancy.store.get(Organization, story.home)
        assert home.is_deleting or story.told <= FIRST_DELETE
    if story.told >= 2:
        inside = await tenancy.store.get(Project, story.inside)
        assert f"{SERVERS}/one" in inside.metadata.finalizers or story.told < 5


def lose_power(sync: int, keep: Keep) -> bool:
    """Lose power at the nth sync, tell the story again from the top, and tell whether the power went at all."""
    reached: list[bool] = []

    async def scenario(world: World) -> None:
        story = Story()
        async with tenancy_controllers(world) as farm:
            await make_platform_provider(farm.store)
        world.plan_power_cut(sync, keep=keep)
        try:
            async with tenancy_controllers(world) as farm:
                await story.tell(farm)
        except (RemudaError, apsw.Error):
            pass
        reached.append(world.disk.is_cut)
        world.power_cut(keep)
        async with tenancy_controllers(world) as farm:
            await check_kept(farm, story)
            await farm.rest()
            await story.tell(farm)
            assert story.told == STEPS
            await farm.rest()
            assert await names(farm) == [PLATFORM_PROVIDER]
            await farm.confirm_absence()

    with capture_logs():
        simulate(scenario, [sync])
    return reached[0]


def test_a_loss_of_power_at_any_write_leaves_nothing_lost_and_nothing_over() -> None:
    for keep in ("none", "all"):
        syncs = next(sync for sync in count(1) if not lose_power(sync, keep)) - 1
        assert syncs > 15


async def test_a_request_whose_answer_was_lost_makes_nothing_twice(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    service, context = tenancy.service, Context(principal=PLATFORM, operation=ABSENT)
    name = MetadataWrite(name="same")
    adhoc = schema.OrganizationWrite(metadata=name, spec=schema.OrganizationSpecWire(organization_type="adhoc"))
    empty = schema.ProjectWrite(metadata=name, spec=schema.ProjectSpecWire(group_ids=()))
    spec = schema.ProviderSpecWire(issuer="https://login.acme.example", client_id="us")
    login = schema.ProviderWrite(metadata=name, spec=spec)
    for _ in range(2):
        assert (await service.organizations.create(context, adhoc)).name == ABSENT
        assert (await service.projects.create(context, home, empty)).name == ABSENT
        assert (await service.providers.create(context, home, login)).name == ABSENT
    assert len((await tenancy.store.list(Project)).items) == len((await tenancy.store.list(OAuth2Provider)).items) == 1
