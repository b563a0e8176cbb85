"""The documents of servers in a cloud's file: their user data is sealed, and sealed again after a rotation."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Unsealable
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.providers.contract.common import Handle
from remuda.providers.contract.servers import CloudServerSpec
from remuda.providers.simulated.catalogue import without_delays
from remuda.providers.simulated.gateway import encode
from remuda.providers.simulated.provider import open_cloud
from remuda.providers.simulated.server_documents import decode_hostname, decode_spec, encode_spec, reseal_servers
from tests.kit.providers.simulated_cloud import USUAL, bench_of

OLD, NEW = (SealingKey(name, name[:1].encode() * 32) for name in ("old", "new"))
BEFORE, AFTER = Sealer(Keyring(OLD)), Sealer(Keyring(NEW, (OLD,)))
SPEC = CloudServerSpec(
    handle=Handle("t", "server"), hostname="web", flavor="f", image="i", port="p", user_data=b"\x1f\x8bmarker\xff"
)


def test_user_data_is_read_as_it_was_written_and_only_in_its_own_server() -> None:
    document = encode_spec(SPEC, "one", BEFORE)
    assert b"marker" not in document
    assert decode_spec(document, "one", AFTER) == SPEC
    assert decode_hostname(document) == "web"
    with pytest.raises(Unsealable):
        decode_spec(document, "another", BEFORE)
    with pytest.raises(Unsealable):
        decode_spec(document, "one", Sealer(Keyring(NEW)))


async def test_resealing_seals_what_an_old_key_or_none_has_sealed_and_nothing_twice(tmp_path: Path) -> None:
    path, clock = tmp_path / "cloud.db", SystemClock()
    cloud = open_cloud(path, without_delays(USUAL), clock=clock, randomness=SystemRandomness(), sealer=BEFORE)
    bench = bench_of(cloud, clock)
    servers = [await bench.server(number) for number in range(3)]
    await cloud.stop()
    with apsw.Connection(str(path)) as connection:
        for number, server in enumerate(servers):
            spec = decode_spec(documents(connection)[server.id], server.id, BEFORE)
            changed = CloudServerSpec(
                **{name: getattr(spec, name) for name in spec.__slots__} | {"user_data": b"marker"}
            )
            document = (encode(changed), encode_spec(changed, server.id, BEFORE), encode_spec(spec, server.id, BEFORE))
            connection.execute("UPDATE servers SET document = ? WHERE id = ?", (document[number], server.id))
    assert reseal_servers(path, AFTER, clock) == 2
    assert reseal_servers(path, AFTER, clock) == 0
    with apsw.Connection(str(path)) as connection:
        stored = documents(connection)
    opened = {name: decode_spec(document, name, Sealer(Keyring(NEW))).user_data for name, document in stored.items()}
    assert [opened[server.id] for server in servers] == [b"marker", b"marker", b""]


def documents(connection: apsw.Connection) -> dict[str, bytes]:
    found: dict[str, Any] = dict(connection.execute("SELECT id, document FROM servers"))
    return found
