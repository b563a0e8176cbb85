"""`remuda keys`, and what it has to do with processes, backups and clouds."""

import shutil
from pathlib import Path

import httpx2
import pytest

from remuda.cli import main
from remuda.datadir import DataDirectory
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import create_keyring_file, load_keyring, remove_previous_keys
from tests.kit.processes.program import Running, running

Said = pytest.CaptureFixture[str]


def run(said: Said, *words: object, code: int = 0) -> str:
    """Return what a command says."""
    said.readouterr()
    assert main([str(word) for word in words]) == code
    out, error = said.readouterr()
    return (error if code else out).strip()


def answers(one: Running) -> int:
    """Return the status of a request with the token of the first start."""
    known = one.credentials
    url = f"{one.url}/identity/api/v1/organizations/{known['organizationId']}"
    return httpx2.get(url, headers={"Authorization": f"Bearer {known['token']}"}).status_code


def listed(said: Said, data: Path) -> list[list[str]]:
    return [line.split(maxsplit=5) for line in run(said, "keys", "list", "--data", data).splitlines()[1:]]


def test_m27_keys_are_rotated_while_a_process_runs_and_everything_goes_on(tmp_path: Path, capsys: Said) -> None:
    data = tmp_path / "data"
    with running(data) as one:
        first = load_keyring(data / "keys.json").current
        told = run(capsys, "keys", "rotate", "--data", data)
        second = load_keyring(data / "keys.json").current
        assert second.id != first.id
        assert told.startswith(f"The new key is {second.id}. ")
        assert "The process seals with it. The history of its store keeps earlier seals for 30 minutes." in told
        _, old = listed(capsys, data)
        assert " ".join(old).endswith("opens the history of the store, of 30 minutes"), "no second rotation is advised"
        assert answers(one) == 200
        token = run(capsys, "token", "issue", "--subject", "admin@remuda.local", "--data", data)
        assert token, "the process opens what is sealed with the new key"
        assert "sealing keys reloaded" in one.stop()[1]
    with running(data, listen=f"127.0.0.1:{one.url.rpartition(':')[2]}") as again:
        assert answers(again) == 200


def test_keys_are_rotated_while_nothing_runs_and_everything_goes_on(tmp_path: Path, capsys: Said) -> None:
    data = tmp_path / "data"
    with running(data) as one:
        port = one.url.rpartition(":")[2]
        (row,) = listed(capsys, data)
        first = load_keyring(data / "keys.json").current
        assert (row[0], row[-1].split()[-1]) == (first.id, "seals")
        assert len(listed(capsys, data)) == 1
    told = run(capsys, "keys", "rotate", "--data", data)
    second = load_keyring(data / "keys.json").current
    assert told.startswith(f"The new key is {second.id}. ")
    assert f"Earlier keys that open what clients keep: {first.id}. " in told
    new, old = listed(capsys, data)
    assert (new[0], new[-1].split()[-1]) == (second.id, "seals")
    assert old[0] == first.id
    assert "opens cookies until" in " ".join(old)
    assert run(capsys, "keys", "list", "-o", "name", "--data", data).split() == [second.id, first.id]
    for secret in (first, second):
        shown = run(capsys, "keys", "list", "-o", "json", "--data", data)
        assert secret.material.hex() not in shown
    assert run(capsys, "keys", "remove", first.id, "--data", data) == f"The key {first.id} was removed."
    with running(data, listen=f"127.0.0.1:{port}") as one:
        assert answers(one) == 200


def test_a_backup_of_before_a_rotation_is_restored_with_the_copy_of_its_keys(
    stopped: Path, tmp_path: Path, capsys: Said
) -> None:
    file, kept = tmp_path / "copy.db", tmp_path / "kept.json"
    run(capsys, "backup", file, "--data", stopped)
    shutil.copy(stopped / "keys.json", kept)
    first = load_keyring(kept).current.id
    run(capsys, "keys", "rotate", "--data", stopped)
    run(capsys, "keys", "remove", first, "--data", stopped)
    second = load_keyring(stopped / "keys.json").current.id
    refused = run(capsys, "restore", file, "--data", stopped, "--move-aside", code=1)
    assert refused == "The keys do not decrypt the secrets in the backup: name the keys of the backup with --keys."
    run(capsys, "restore", file, "--data", stopped, "--move-aside", "--keys", kept)
    found = load_keyring(stopped / "keys.json")
    assert [key.id for key in found.keys] == [second, first], "the key of the clouds stays the current one"
    with running(stopped) as one:
        assert answers(one) == 200
    run(capsys, "keys", "rotate", "--data", stopped)
    run(capsys, "keys", "remove", first, "--data", stopped)
    with running(stopped) as one:
        assert answers(one) == 200


def test_derived_keys_are_those_of_the_system_that_was_backed_up(stopped: Path, tmp_path: Path, capsys: Said) -> None:
    file, other = tmp_path / "copy.db", tmp_path / "other"
    run(capsys, "backup", file, "--with-keys", "--data", stopped)
    other.mkdir(mode=0o700)
    fresh = create_keyring_file(other / "keys.json", SystemRandomness())
    run(capsys, "restore", file, "--keys", f"{file}.keys.json", "--data", other)
    restored, before = load_keyring(other / "keys.json"), load_keyring(stopped / "keys.json")
    assert restored.keys == (*before.keys, *fresh.keys)
    assert restored.root == before.root
    remove_previous_keys(other / "keys.json", {fresh.current.id})
    assert DataDirectory(other).sealer().derived_key("audit") == DataDirectory(stopped).sealer().derived_key("audit")
