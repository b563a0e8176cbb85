"""Rotation of the sealing key, from the first write under the new key to the day the old one goes."""

from pathlib import Path

import pytest

from remuda.kernel.errors import Unsealable
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret
from remuda.store.reseal import reseal
from remuda.store.sqlite.store import open_store
from tests.kit.sample_kinds import REGISTRY, Horse, HorseSpec, horse

OLD, NEW = SealingKey("old", b"o" * 32), SealingKey("new", b"n" * 32)
BRAND = Secret("rocking-r")


async def test_after_resealing_the_old_key_is_not_needed_and_a_second_pass_writes_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "db", REGISTRY, Sealer(Keyring(OLD)))
    for number in range(150):
        await store.create(horse(f"h-{number:03}", spec=HorseSpec(brand=BRAND if number % 3 == 0 else None)))
    await store.close()

    store = open_store(tmp_path / "db", REGISTRY, Sealer(Keyring(NEW, (OLD,))))
    assert await reseal(store) == 50
    assert await reseal(store) == 0
    await store.close()

    store = open_store(tmp_path / "db", REGISTRY, Sealer(Keyring(NEW)))
    horses = (await store.list(Horse)).items
    assert [one.spec.brand for one in horses] == [BRAND if number % 3 == 0 else None for number in range(150)]
    await store.close()


async def test_without_resealing_the_old_key_is_missed_by_its_name(tmp_path: Path) -> None:
    store = open_store(tmp_path / "db", REGISTRY, Sealer(Keyring(OLD)))
    await store.create(horse("branded", spec=HorseSpec(brand=BRAND)))
    await store.close()

    store = open_store(tmp_path / "db", REGISTRY, Sealer(Keyring(NEW)))
    with pytest.raises(Unsealable, match="old"):
        await store.get(Horse, "branded")
    await store.close()
