"""Rotation of the sealing keys: everything that is stored is sealed again, at whatever point it is interrupted."""

import asyncio
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from remuda.app.key_rotation import key_uses, remove, rotate
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import load_keyring
from remuda.store.sqlite.seals import keys_of_seals
from tests.kit.processes.killed_steps import run_killed_at
from tests.kit.processes.sealed_data import CREATED, NAMES, check

KILLS = 24
CHILD = """
import asyncio, sys
from pathlib import Path
from remuda.app.key_rotation import rotate
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from tests.kit.processes.killed_steps import killed_at

with killed_at(int(sys.argv[2])):
    asyncio.run(rotate(DataDirectory(Path(sys.argv[1])), SystemClock(), SystemRandomness()))
"""


async def test_m27_after_a_rotation_no_byte_of_any_file_needs_the_old_key(data: DataDirectory) -> None:
    old, derived = load_keyring(data.keys).current, data.sealer().derived_key("audit")
    done = await rotate(data, SystemClock(), SystemRandomness())
    assert done.is_new
    assert done.resealed >= len(NAMES) * 2 - 2 + 4
    assert (done.removed, done.previous) == ((), (old.id,)), "browsers may keep what it has sealed"
    for path in (data.store, data.clouds / "sim-north.db"):
        assert set(keys_of_seals(path)) == {done.current.id}
        for file in path.parent.glob(f"{path.name}*"):
            assert f"sealed:v1:{old.id}".encode() not in file.read_bytes(), file
    remove(data, old.id)
    assert [key.id for key in load_keyring(data.keys).keys] == [done.current.id]
    assert data.sealer().derived_key("audit") == derived
    await check(data, data.sealer())


async def test_old_keys_are_removed_when_no_browser_can_have_a_text_of_them(data: DataDirectory) -> None:
    class Later(SystemClock):
        days = 0

        def now(self) -> datetime:
            return CREATED + timedelta(days=self.days)

    clock, first = Later(), load_keyring(data.keys).current.id
    clock.days = 10
    second = (await rotate(data, clock, SystemRandomness())).current.id
    clock.days = 100
    third = await rotate(data, clock, SystemRandomness())
    assert third.previous == (second, first)
    clock.days = 195
    fourth = await rotate(data, clock, SystemRandomness())
    assert fourth.removed == (first,)
    assert fourth.previous == (third.current.id, second)
    await check(data, data.sealer())


async def test_keys_are_listed_with_what_needs_them(data: DataDirectory) -> None:
    (only,) = key_uses(data)
    assert (only.is_current, only.key.created) == (True, CREATED)
    assert only.stored > 10
    await rotate(data, SystemClock(), SystemRandomness())
    new, old = key_uses(data)
    assert (new.is_current, old.is_current, old.stored) == (True, False, 0)
    assert (new.is_replaced, old.is_replaced) == (False, True)
    assert old.superseded == new.key.created
    assert old.is_needed(SystemClock().now())
    assert not old.is_needed(SystemClock().now() + timedelta(days=181))


async def test_a_key_that_something_needs_is_not_removed(data: DataDirectory) -> None:
    current = load_keyring(data.keys).current.id
    with pytest.raises(Invalid, match="is the current key: run remuda keys rotate first"):
        remove(data, current)
    with pytest.raises(Invalid, match=f"nonsense does not exist: use one of {current}"):
        remove(data, "nonsense")
    before = shutil.copytree(data.path, data.path.with_name("before"))
    await rotate(data, SystemClock(), SystemRandomness())
    shutil.copy(before / "remuda.db", data.store)
    with pytest.raises(Invalid, match=f"{current} has sealed [0-9]+ stored texts"):
        remove(data, current)


async def test_a_process_that_started_with_the_keys_of_before_a_rotation_does_not_use_them(data: DataDirectory) -> None:
    sealer = data.sealer()
    data.check_keys(sealer)
    await rotate(data, SystemClock(), SystemRandomness())
    with pytest.raises(Unusable, match="were rotated during the start"):
        data.check_keys(sealer)


def test_m24_a_rotation_that_is_killed_at_any_step_loses_nothing_and_is_completed_by_the_next(
    furnished: Path, tmp_path: Path
) -> None:
    count = run_killed_at(0, CHILD, shutil.copytree(furnished, tmp_path / "whole"))
    assert count > 3 * KILLS
    old = load_keyring(furnished / "keys.json").current.id
    for number in range(KILLS):
        data = DataDirectory(shutil.copytree(furnished, tmp_path / f"killed-{number}"))
        run_killed_at(1 + number * (count - 2) // (KILLS - 1), CHILD, data.path)
        asyncio.run(check(data, data.sealer()))
        done = asyncio.run(rotate(data, SystemClock(), SystemRandomness()))
        assert set(keys_of_seals(data.store)) == {done.current.id}
        assert done.current.id != old
        asyncio.run(check(data, data.sealer()))
