import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remuda.kernel.errors import Invalid, NotFound
from remuda.kernel.randomness import SeededRandomness, SystemRandomness
from remuda.kernel.sealing import (
    Keyring,
    Sealer,
    SealingKey,
    create_keyring_file,
    load_keyring,
    remove_previous_keys,
    rotate_keyring_file,
    write_keyring_file,
)
from remuda.kernel.secrets import Secret

RANDOMNESS = SystemRandomness()


def write_private(path: Path, content: str) -> None:
    path.write_text(content)
    path.chmod(0o600)


def key_file(
    *, key_id: str = "k", material: str = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=", count: int = 1
) -> str:
    return json.dumps({"format": 1, "keys": [{"id": key_id, "material": material}] * count})


def test_a_created_file_is_private_and_loads_as_the_returned_keyring(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keyring = create_keyring_file(path, RANDOMNESS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_keyring(path) == keyring
    assert keyring.previous == ()
    assert os.listdir(tmp_path) == ["keys.json"]  # noqa: PTH208  no temporary file is left behind


def test_creating_again_keeps_the_keys_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keyring = create_keyring_file(path, RANDOMNESS)
    content = path.read_bytes()
    assert create_keyring_file(path, RANDOMNESS) == keyring
    assert path.read_bytes() == content


def test_rotation_puts_a_new_key_in_front_and_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first = create_keyring_file(path, RANDOMNESS)
    sealed = Sealer(first).seal(Secret("token"), context="here")
    rotate_keyring_file(path, RANDOMNESS)
    last = rotate_keyring_file(path, RANDOMNESS)
    assert load_keyring(path) == last
    assert last.keys[-1] == first.current
    assert len(last.keys) == 3
    assert Sealer(last).open(sealed, context="here") == Secret("token")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_creating_at_once_gives_everybody_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keyrings = list(pool.map(lambda _: create_keyring_file(tmp_path / "k", RANDOMNESS), range(8)))
    assert all(keyring == keyrings[0] for keyring in keyrings)


def test_rotating_at_once_loses_no_key(tmp_path: Path) -> None:
    path = tmp_path / "k"
    create_keyring_file(path, RANDOMNESS)
    with ThreadPoolExecutor(8) as pool:
        keyrings = list(pool.map(lambda _: rotate_keyring_file(path, RANDOMNESS), range(8)))
    assert {keyring.current for keyring in keyrings} <= set(load_keyring(path).keys)
    assert len(load_keyring(path).keys) == 9


def test_keys_come_from_the_given_randomness(tmp_path: Path) -> None:
    keyrings = [create_keyring_file(tmp_path / name, SeededRandomness(1)) for name in "ab"]
    assert keyrings[0] == keyrings[1]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_open_to_others_is_refused_with_the_command_that_repairs_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.json"
    create_keyring_file(path, RANDOMNESS)
    path.chmod(mode)
    for use in (load_keyring, lambda file: rotate_keyring_file(file, RANDOMNESS)):
        with pytest.raises(Invalid, match=f"chmod 600 {path}"):
            use(path)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="key file"):
        load_keyring(tmp_path / "absent")
    with pytest.raises(NotFound):
        rotate_keyring_file(tmp_path / "absent", RANDOMNESS)


def test_a_missing_directory_and_a_directory_in_the_place_of_the_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="absent"):
        create_keyring_file(tmp_path / "absent" / "keys.json", RANDOMNESS)
    with pytest.raises(Invalid):
        load_keyring(tmp_path)


def test_a_failed_write_leaves_the_old_keys_and_no_second_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.json"
    keyring = create_keyring_file(path, RANDOMNESS)

    def reject(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", reject)
    with pytest.raises(Invalid, match="No space left"):
        rotate_keyring_file(path, RANDOMNESS)
    assert load_keyring(path) == keyring
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not json",
        "[]",
        '{"format": 2, "keys": []}',
        '{"format": 1, "keys": []}',
        key_file(material="canary"),
        key_file(material="Y2FuYXJ5"),
        key_file(key_id="UPPER canary"),
        key_file(count=2),
    ],
)
def test_a_file_that_holds_no_keys_is_refused_without_quoting_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    write_private(path, content)
    with pytest.raises(Invalid, match="is not a key file") as caught:
        load_keyring(path)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "canary" not in str(caught.value)


def test_the_file_format_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    write_private(path, key_file())
    keyring: Keyring = load_keyring(path)
    assert (keyring.current.id, keyring.current.material) == ("k", b"k" * 32)


def test_a_derived_key_survives_rotation_and_the_removal_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first = create_keyring_file(path, RANDOMNESS)
    derived = Sealer(first).derived_key("audit")
    rotate_keyring_file(path, RANDOMNESS)
    rotated = rotate_keyring_file(path, RANDOMNESS)
    assert Sealer(load_keyring(path)).derived_key("audit") == derived
    remove_previous_keys(path, {key.id for key in rotated.previous})
    left = load_keyring(path)
    assert left.keys == (rotated.current,)
    assert Sealer(left).derived_key("audit") == derived
    assert first.current.material not in {left.root, derived}


def test_derived_keys_differ_by_purpose_and_are_no_sealing_key(tmp_path: Path) -> None:
    keyring = create_keyring_file(tmp_path / "keys.json", RANDOMNESS)
    keys = {keyring.current.material, keyring.root, *map(Sealer(keyring).derived_key, ("audit", "metrics"))}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}
    assert keyring.root.hex() not in repr(keyring)


def test_the_current_key_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keyring = create_keyring_file(path, RANDOMNESS)
    assert remove_previous_keys(path, {keyring.current.id}).keys == keyring.keys


def test_keys_of_another_file_open_and_do_not_seal(tmp_path: Path) -> None:
    ours, theirs = (create_keyring_file(tmp_path / name, RANDOMNESS) for name in "ab")
    joined = ours.with_previous(theirs)
    write_keyring_file(tmp_path / "a", joined)
    assert load_keyring(tmp_path / "a") == joined
    assert joined.keys == (ours.current, theirs.current)
    assert joined.root == ours.root
    assert joined.with_previous(theirs) == joined
    with pytest.raises(Invalid, match="two keys with the id"):
        joined.with_previous(Keyring(SealingKey(theirs.current.id, b"x" * 32)))
