"""The first start, cut off at every one of its effects; and what later starts do."""

import json
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

from remuda.identity.bootstrap import BootstrapRun, BootstrapSettings, FirstLogin, check_bootstrap
from remuda.identity.credentials import Credentials, CredentialsFile, ExampleInstance
from remuda.identity.kinds.tenancy import Bootstrap, Organization, Project
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount, User, membership_id, user_id
from remuda.identity.login.passwords import Argon2Parameters, Passwords
from remuda.identity.rbac.roles import role_id
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import Bearers
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import Sessions
from remuda.kernel.errors import Invalid, Unauthenticated
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import PAYING_CREATOR, PAYING_ORGANIZATION
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import Provided
from tests.kit.identity.login import common_words
from tests.kit.identity.resource_api import registry
from tests.kit.proofs.crashing_store import MOMENTS, CrashError, Fuse, FusedStore
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

T = TypeVar("T")

KINDS: list[type[Any]] = [Organization, Project, User, OrganizationUser, ServiceAccount, Group]
URL = "http://127.0.0.1:8080/identity"


@dataclass
class Machine:
    """A store and a directory over which a process starts, and starts again."""

    world: World
    store: SqliteStore
    path: Path
    told: list[FirstLogin] = field(default_factory=list)

    @property
    def credentials(self) -> Credentials:
        read = CredentialsFile(self.path).read()
        assert read is not None
        return read

    async def start(
        self, fuse: Fuse | None = None, *, url: str = URL, settings: BootstrapSettings | None = None, **offer: Any
    ) -> None:
        burning = fuse or Fuse()

        async def run_blocking(work: Callable[[], T]) -> T:
            burning.writes += 1
            burning.burn("before")
            done = work()
            burning.burn("after")
            return done

        def tell(welcome: FirstLogin) -> None:
            burning.writes += 1
            burning.burn("before")
            self.told.append(welcome)
            burning.burn("after")

        store = FusedStore(self.store, burning)
        tokens = self.tokens(url, store)
        first = BootstrapRun(
            store=store,
            clock=self.world.clock,
            randomness=self.world.randomness,
            run_blocking=run_blocking,
            tokens=tokens,
            passwords=self.passwords(tokens, store),
            settings=settings or BootstrapSettings(),
            credentials=CredentialsFile(self.path),
            endpoint=url,
            **offer,
        )
        await first.run(tell)

    def tokens(self, url: str = URL, store: Store | None = None) -> Tokens:
        world, settings = self.world, IdentitySettings(issuer=url, service_account_token_lifetime=timedelta(hours=1))
        over: dict[str, Any] = {"store": store or self.store, "clock": world.clock, "randomness": world.randomness}
        return Tokens(**over, settings=settings, keys=SigningKeys(**over, settings=settings))

    def passwords(self, tokens: Tokens, store: Store) -> Passwords:
        async def here(work: Callable[[], T]) -> T:
            return work()

        world = self.world
        over: dict[str, Any] = {"store": store, "clock": world.clock, "randomness": world.randomness}
        sessions = Sessions(**over, settings=tokens.settings, tokens=tokens)
        return Passwords(
            **over,
            run_blocking=here,
            sessions=sessions,
            parameters=Argon2Parameters(memory_kib=8, time_cost=1),
            load_common=common_words,
        )

    async def has_password(self, password: Secret) -> bool:
        return await self.passwords(self.tokens(), self.store).verify(user_id(self.told[-1].administrator), password)

    async def assert_everything_is_there_once(self) -> None:
        assert [len((await self.store.list(kind)).items) for kind in KINDS] == [1, 1, 1, 1, 1, 2]
        assert await self.is_good()
        shown = self.told[-1].password
        assert shown is not None
        assert await self.has_password(shown)
        (record,) = (await self.store.list(Bootstrap)).items
        assert record.status.finished is not None

    async def is_good(self, url: str = URL) -> bool:
        """Tell whether the token of the file is that of the service account."""
        tokens = self.tokens(url)
        over: dict[str, Any] = {"store": self.store, "tokens": tokens}
        more: dict[str, Any] = {"clock": self.world.clock, "randomness": self.world.randomness}
        bearers = Bearers(**over, sessions=Sessions(**over, **more, settings=tokens.settings))
        try:
            bearer = await bearers.identify(self.credentials.token.reveal())
        except Unauthenticated:
            return False
        return bearer.account is not None


def on_a_machine(scenario: Callable[[Machine], Awaitable[None]], directory: Path) -> None:
    async def run(world: World) -> None:
        store = open_simulated(world, registry())
        try:
            await scenario(Machine(world, store, directory / "credentials.json"))
        finally:
            await store.close()

    simulate(run, [7])


@pytest.fixture
def machine(tmp_path: Path) -> Provided:
    return Provided(launcher=partial(on_a_machine, directory=tmp_path))


async def test_the_first_start_makes_everything_and_tells_once(machine: Machine, tmp_path: Path) -> None:
    await machine.start()
    await machine.assert_everything_is_there_once()
    credentials, store = machine.credentials, machine.store
    organization = await store.get(Organization, credentials.organization_id)
    project = await store.get(Project, credentials.project_id)
    membership = membership_id(organization.name, user_id("admin@remuda.local"))
    (account,) = (await store.list(ServiceAccount)).items
    groups = {group.spec.role_ids: group for group in (await store.list(Group)).items}
    administrators, users = groups[(role_id("administrator"),)], groups[(role_id("user"),)]
    assert administrators.spec.user_ids == (membership,)
    assert administrators.spec.service_account_ids == users.spec.service_account_ids == (account.name,)
    assert project.spec.group_ids == (users.name,)
    before = tmp_path.joinpath("credentials.json").read_bytes()
    for _ in range(2):
        await machine.start()
    assert len(machine.told) == 1
    assert tmp_path.joinpath("credentials.json").read_bytes() == before


async def test_a_later_start_says_where_services_are_and_what_a_server_is_made_of_and_keeps_the_token(
    machine: Machine,
) -> None:
    await machine.start()
    before = machine.credentials
    assert (before.endpoints, before.region_id) == ({"identity": URL}, None)
    small = ExampleInstance(region_id="north", flavor_id="one", image_id="linux")
    for _ in range(2):
        await machine.start(others={"region": "http://there"}, example_instance=small)
        now = machine.credentials
        assert now.endpoints == {"identity": URL, "region": "http://there"}
        assert (now.region_id, now.flavor_id, now.image_id) == ("north", "one", "linux")
        assert now.token == before.token
    await machine.start()
    assert machine.credentials == before, "what is no longer there is no longer named"


async def test_what_the_first_start_makes_says_who_pays_for_it(machine: Machine) -> None:
    await machine.start()
    payer = machine.credentials.organization_id
    for kind in KINDS:
        for made in (await machine.store.list(kind)).items:
            metadata = made.metadata
            assert (metadata.labels[PAYING_ORGANIZATION], metadata.annotations[PAYING_CREATOR]) == (payer, "remuda")


async def test_the_file_is_private_and_has_what_scripts_need(machine: Machine) -> None:
    await machine.start()
    content = json.loads(machine.path.read_bytes())
    assert content["endpoints"] == {"identity": URL}
    assert set(content) == {"endpoints", "token", "organizationId", "projectId"}
    assert stat.S_IMODE(machine.path.stat().st_mode) == 0o600
    assert [each.name for each in machine.path.parent.iterdir()] == ["credentials.json"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_first_start_that_is_cut_off_anywhere_is_made_up_for_by_the_next(moment: Any, tmp_path: Path) -> None:
    cuts = 0
    for at in count(1):
        folder = tmp_path / str(at)
        folder.mkdir()
        fuse = Fuse(at, moment)

        async def scenario(machine: Machine, fuse: Fuse = fuse) -> None:
            try:
                await machine.start(fuse)
            except CrashError:
                await machine.start()
            await machine.assert_everything_is_there_once()

        on_a_machine(scenario, folder)
        if not fuse.has_blown:
            break
        cuts += 1
    assert cuts > 10


async def test_a_password_that_may_not_have_been_read_is_replaced_by_one_that_is_told(machine: Machine) -> None:
    for at in count(1):
        try:
            await machine.start(Fuse(at, "before"))
        except CrashError:
            continue
        break
    assert len(machine.told) == 2, "one was told and the record not closed: another one is told"
    first, last = (each.password for each in machine.told)
    assert first is not None
    assert last is not None
    assert not await machine.has_password(first)
    assert await machine.has_password(last)


async def test_what_was_removed_is_not_recreated(machine: Machine) -> None:
    await machine.start()
    store = machine.store
    for kind in (Group, OrganizationUser, User):
        for each in (await store.list(kind)).items:
            await store.delete(kind, each.name, uid=each.uid)
    machine.path.unlink()
    await machine.start()
    assert [len((await store.list(kind)).items) for kind in (Group, OrganizationUser, User)] == [0, 0, 0]
    assert len(machine.told) == 1
    assert not machine.path.exists()


async def test_the_token_is_renewed_when_it_has_ended_or_clients_come_another_way(machine: Machine) -> None:
    await machine.start()
    old = machine.credentials.token
    moved = "https://cloud.example.com/identity"
    await machine.start(url=moved)
    assert machine.credentials.token != old
    assert machine.credentials.endpoints == {"identity": moved}
    assert await machine.is_good(moved)
    await machine.world.clock.sleep(timedelta(hours=2).total_seconds())
    assert not await machine.is_good(moved)
    await machine.start(url=moved)
    assert await machine.is_good(moved)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_renewal_that_is_cut_off_anywhere_leaves_a_good_token_after_the_next_start(
    moment: Any, tmp_path: Path
) -> None:
    for at in count(1):
        folder = tmp_path / str(at)
        folder.mkdir()
        fuse = Fuse(at, moment)

        async def scenario(machine: Machine, fuse: Fuse = fuse) -> None:
            await machine.start()
            moved = "https://cloud.example.com/identity"
            try:
                await machine.start(fuse, url=moved)
            except CrashError:
                await machine.start(url=moved)
            assert await machine.is_good(moved)
            assert [each.name for each in machine.path.parent.iterdir()] == ["credentials.json"]

        on_a_machine(scenario, folder)
        if not fuse.has_blown:
            break
    assert at > 5


async def test_a_token_that_somebody_rotated_is_left_to_them(machine: Machine) -> None:
    await machine.start()
    mine = machine.credentials
    other = CredentialsFile(machine.path)
    other.stage(Credentials(endpoints={}, token=Secret("x"), organization_id="o", project_id="p"))
    other.publish()
    await machine.start(url="https://cloud.example.com/identity")
    assert machine.credentials.token == Secret("x")
    other.stage(mine)
    other.publish()
    assert await machine.is_good()


async def test_a_password_of_the_configuration_is_set_and_not_shown(machine: Machine) -> None:
    chosen = Secret("a password of one's own")
    settings = BootstrapSettings(administrator="root@example.com", password=chosen, organization="acme")
    await machine.start(settings=settings)
    (told,) = machine.told
    assert (told.administrator, told.password) == ("root@example.com", None)
    assert await machine.has_password(chosen)


def test_a_password_of_the_configuration_that_is_easily_guessed_is_refused() -> None:
    with pytest.raises(Invalid, match="password is too short"):
        check_bootstrap(BootstrapSettings(password=Secret("short")))


async def test_a_password_of_the_configuration_that_is_common_is_refused_before_anything_is_made(
    machine: Machine,
) -> None:
    for common in ("Administrator-1", "Acme-Rockets-2026", "root@example.com"):
        settings = BootstrapSettings(
            administrator="root@example.com", password=Secret(common), organization="acme rockets"
        )
        with pytest.raises(Invalid, match=r"identity\.bootstrap\.password is common .*: choose three or more words"):
            await machine.start(settings=settings)
    assert not (await machine.store.list(Organization)).items


async def test_random_passwords_differ_and_nothing_of_them_is_stored_in_clear(machine: Machine) -> None:
    await machine.start()
    (told,) = machine.told
    assert told.password is not None
    text = told.password.reveal()
    assert len(text) == 23
    assert "Secret(" in repr(told)
    assert text not in repr(told)
    secrets = [text, machine.credentials.token.reveal()]
    for path in machine.world.disk.directory.iterdir():
        content = path.read_bytes()
        assert not [each for each in secrets if each.encode() in content], path
