"""`kill -9` of a whole service, with its controllers, while customers make and remove things: none is lost or leaked.

A customer whose answer was lost asks again, under the same idempotency key, when the service is back. REMUDA_KILLS says
how often it is killed.
"""

import asyncio
import os
import random
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import cast

from remuda.access.principal import Context
from remuda.http.client import Client
from remuda.http.transport import BearerCredentials, ClientSettings
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Conflict, NotFound, Unavailable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import Sealer, load_keyring
from remuda.kernel.secrets import Secret
from remuda.store.sqlite.store import open_store
from tests.example import wire
from tests.example.app import registry
from tests.example.authenticator import ORGANIZATION, PRINCIPALS, PROJECT
from tests.example.book import Book
from tests.example.house import shared_table
from tests.example.laws import check_always, snapshot, unrest
from tests.example.pasture import SimPasture
from tests.example.process import Standing, pasture_of, standing

KILLS = int(os.environ.get("REMUDA_KILLS", "3"))
LONGEST_LIFE_S = 0.4
CUSTOMERS = 6
REST_S = 30.0
ROUTES = {route.name: route for route in shared_table().routes}
QUICK = ClientSettings(attempts=8, first_pause_s=0.02, longest_pause_s=0.1, total_s=10)


class Customers:
    """They make mounts and remove every third, until nobody answers; what is open then they ask for again."""

    def __init__(self) -> None:
        self.book = Book()
        self._numbers = count()
        self._open: list[tuple[str, str, str]] = []
        """What was asked for and not answered: the yard, the name of the mount, and the operation that makes it."""
        self._leaving: list[tuple[str, str]] = []
        """Mounts that were asked to go without an answer, with their operations."""
        self._randomness = SystemRandomness()

    @property
    def is_answered(self) -> bool:
        return not self._open and not self._leaving

    async def use(self, one: Standing, *, life_s: float | None) -> None:
        """Use the service for so long and kill it then; or ask for what is open, and leave."""
        async with self._client(one) as client:
            if life_s is None:
                await self._settle(client)
                return
            yard = await self._make_yard(client)
            asyncio.get_running_loop().call_later(life_s, one.process.kill)
            await asyncio.gather(*[self._use_until_it_dies(client, yard) for _ in range(CUSTOMERS)])

    async def _use_until_it_dies(self, client: Client, yard: str) -> None:
        with suppress(Unavailable):
            while True:
                await self._settle(client)
                number = next(self._numbers)
                with suppress(Conflict):  # too many at once: it is open, and asked for again
                    mount, operation = await self._make(client, yard, f"m{number}", random_id(self._randomness))
                    if number % 3 == 0:
                        await self._remove(client, mount, operation)

    async def _settle(self, client: Client) -> None:
        while self._open or self._leaving:
            with suppress(Conflict):
                if self._open:
                    await self._make(client, *self._open.pop())
                else:
                    await self._remove(client, *self._leaving.pop())

    async def _make_yard(self, client: Client) -> str:
        body = wire.YardWrite(metadata=wire.MetadataWrite(name="y"), spec=wire.YardSpecWire(stalls=1000))
        path = wire.ProjectPath(organization=ORGANIZATION, project=PROJECT)
        made = await client.send(ROUTES["create_yard"], path=path, body=body)
        self.book.promised_yard(made.metadata.id)
        return str(made.metadata.id)

    async def _make(self, client: Client, yard: str, name: str, operation: str) -> tuple[str, str]:
        spec = wire.NewMountSpec(yard_id=yard, breed="mule")
        body = wire.MountCreate(metadata=wire.MetadataWrite(name=name), spec=spec)
        context = Context(principal=PRINCIPALS["user"], operation=operation)
        since = self.book.begin()
        try:
            made = await client.send(ROUTES["create_mount"], body=body, context=context)
        except (Unavailable, Conflict):
            self._open.append((yard, name, operation))
            raise
        self.book.promised_mount(made.status.operation_id, made.metadata.id, yard, since=since)
        return made.metadata.id, made.status.operation_id

    async def _remove(self, client: Client, mount: str, operation: str) -> None:
        with self.book.going(mount):
            try:
                await client.send(ROUTES["delete_mount"], path=wire.MountPath(mount=mount))
            except NotFound:
                pass  # the first time was heard after all
            except (Unavailable, Conflict):
                self._leaving.append((mount, operation))
                raise
        self.book.must_go.add(operation)

    def _client(self, one: Standing) -> Client:
        return Client(
            one.url,
            credentials=BearerCredentials(lambda: Secret("user")),
            clock=SystemClock(),
            randomness=self._randomness,
            settings=QUICK,
        )


async def look(data: Path, book: Book) -> list[str]:
    """Hold the laws against what a process left, and return what is not at rest."""
    store = open_store(data / "remuda.db", registry(), Sealer(load_keyring(data / "keys.json")))
    pasture = cast("SimPasture", pasture_of(data))
    try:
        seen = await snapshot(store)
        check_always(seen, book, pasture)
        return unrest(seen, book, pasture)
    finally:
        await store.close()


def test_a_service_that_is_killed_again_and_again_loses_nothing_and_leaks_nothing(tmp_path: Path) -> None:
    draws, data, customers = random.Random(), tmp_path / "data", Customers()
    for _ in range(KILLS):
        with standing(data) as one:
            asyncio.run(customers.use(one, life_s=draws.uniform(0.02, LONGEST_LIFE_S)))
            one.process.wait()
        asyncio.run(look(data, customers.book))
    ends = time.monotonic() + REST_S
    left = ["it was not looked at"]
    while left or not customers.is_answered:
        assert time.monotonic() < ends, f"no rest: {left}"
        with standing(data) as one:
            asyncio.run(customers.use(one, life_s=None))
            time.sleep(1)
            assert one.stop() == 0
        left = asyncio.run(look(data, customers.book))
    assert customers.book.mounts, "somebody was served"
