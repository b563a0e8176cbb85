"""A data directory with secrets in its store and in a simulated cloud, and the check that they are all there."""

from datetime import UTC, datetime

from msgspec.structs import replace

from remuda.app import registry
from remuda.datadir import DataDirectory
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec, Password, PasswordSpec
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.providers.simulated.catalogue import without_delays
from remuda.providers.simulated.provider import open_cloud
from remuda.resources.conventions import ORGANIZATION
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import open_store
from tests.kit.providers.conformance import handle_of_server
from tests.kit.providers.simulated_cloud import USUAL, bench_of

NAMES = [f"d{number:07}-0000-4000-8000-000000000001" for number in range(8)]
CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def user_data(number: int) -> bytes:
    return f"#!/bin/sh\necho password-{number}\n".encode()


async def furnish(data: DataDirectory) -> None:
    """Make a store and a cloud with secrets, and with superseded and deleted ones in their files."""
    sealer = data.prepare(SystemRandomness(), now=CREATED)
    store = open_store(data.store, registry(), sealer)
    for name in NAMES:
        spec = OAuth2ProviderSpec(issuer="https://idp.example", client_secret=Secret(f"first {name}"))
        metadata = Metadata(name=name, labels={ORGANIZATION: "one"})
        made = await store.create(OAuth2Provider(metadata=metadata, spec=spec))
        changed = replace(made, spec=replace(spec, client_secret=Secret(f"secret {name}")))
        await store.update(replace(changed, metadata=replace(made.metadata, labels={ORGANIZATION: "two"})))
        await store.create(Password(metadata=Metadata(name=name), spec=PasswordSpec(hash=Secret(f"hash {name}"))))
    for name in NAMES[:2]:  # one without its secret from now on, one deleted
        found = await store.get(Password, name)
        if name == NAMES[0]:
            without = replace(found, spec=PasswordSpec(reset_hash="abc"))
            await store.update(without)
        else:
            await store.delete(Password, name, uid=found.uid)
    await store.close()
    path = data.clouds / "sim-north.db"
    cloud = open_cloud(path, without_delays(USUAL), clock=SystemClock(), randomness=SystemRandomness(), sealer=sealer)
    bench = bench_of(cloud, SystemClock())
    servers = cloud.provider.servers
    assert servers is not None
    for number in range(4):
        made_server = await bench.server(number)
        await servers.rebuild_server(made_server.handle, bench.image, user_data(number))
    await cloud.stop()


async def check(data: DataDirectory, sealer: Sealer) -> None:
    """See that every secret is there, and that nothing needs another key than those of the sealer."""
    store = open_store(data.store, registry(), sealer)
    try:
        for name in NAMES:
            assert (await store.get(OAuth2Provider, name)).spec.client_secret == Secret(f"secret {name}")
        for name in NAMES[2:]:
            assert (await store.get(Password, name)).spec.hash == Secret(f"hash {name}")
    finally:
        await store.close()
    path = data.clouds / "sim-north.db"
    cloud = open_cloud(path, without_delays(USUAL), clock=SystemClock(), randomness=SystemRandomness(), sealer=sealer)
    consoles = cloud.provider.consoles
    assert consoles is not None
    for number in range(4):
        assert await consoles.console_output(handle_of_server(number), lines=1000)
    await cloud.stop()
