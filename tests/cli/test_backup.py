"""`remuda backup` and `remuda restore`, beside a process and without one."""

import contextlib
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest

from remuda.cli import main
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import create_keyring_file, load_keyring
from tests.kit.processes.program import Running, running

Said = pytest.CaptureFixture[str]


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is in a directory, but for what SQLite and locks have there meanwhile."""
    passing = ("-wal", "-shm", ".lock")
    return {path.name: path.read_bytes() for path in folder.glob("*.*") if not path.name.endswith(passing)}


def run(*words: object) -> int:
    return main([str(word) for word in words])


def rejection(said: Said, *words: object) -> str:
    """Return the one sentence with which a command ends."""
    assert run(*words) == 1
    out, error = said.readouterr()
    assert out == ""
    assert error.count("\n") == 1, error
    return error.strip()


def projects_url(one: Running, organization: str) -> str:
    return f"{one.url}/identity/api/v1/organizations/{organization}/projects"


def projects(one: Running, known: Mapping[str, str]) -> list[str]:
    url = projects_url(one, known["organizationId"])
    answer = httpx2.get(url, headers={"Authorization": f"Bearer {known['token']}"})
    assert answer.status_code == 200, answer.text
    return sorted(each["metadata"]["name"] for each in answer.json())


def make_project(one: Running, known: Mapping[str, str], name: str) -> None:
    url = projects_url(one, known["organizationId"])
    body = {"metadata": {"name": name}, "spec": {"groupIDs": []}}
    answer = httpx2.post(url, headers={"Authorization": f"Bearer {known['token']}"}, json=body)
    assert answer.is_success, answer.text


def test_what_is_backed_up_beside_a_process_is_there_after_a_restore(tmp_path: Path, capsys: Said) -> None:
    data, file, other = tmp_path / "data", tmp_path / "copy.db", tmp_path / "other"
    with running(data) as one:
        known = one.credentials
        make_project(one, known, "kept")
        assert run("backup", file, "--with-keys", "--data", data) == 0
        make_project(one, known, "later")
        everything = projects(one, known)
        assert {"kept", "later"} <= set(everything)
        told = rejection_after(capsys, "restore", file, "--data", data, "--move-aside")
        assert told.startswith(f"Another process has the store {data}/remuda.db open")
        assert projects(one, known) == everything
        port = one.url.rpartition(":")[2]
    assert run("restore", file, "--keys", f"{file}.keys.json", "--data", other) == 0
    with running(other, listen=f"127.0.0.1:{port}") as one:
        assert projects(one, known) == [name for name in everything if name != "later"]


def rejection_after(said: Said, *words: object) -> str:
    said.readouterr()
    return rejection(said, *words)


def test_what_a_killed_process_had_acknowledged_is_in_the_copy(left: Path, tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "copy.db"
    before = contents(left)
    assert run("backup", file, "--data", left) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        f"The backup {file} of {left}/remuda.db is complete and verified.",
        f"It does not contain the keys: keep a copy of {left}/keys.json elsewhere, or its secrets cannot be decrypted.",
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    assert contents(left) == before
    with sqlite3.connect(file) as copy:
        (count,) = copy.execute("SELECT count(*) FROM objects").fetchone()
    assert count > 10


def test_a_copy_takes_nothing_elses_place(left: Path, tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "copy.db"
    file.write_text("mine")
    assert rejection(capsys, "backup", file, "--data", left) == (
        f"The backup would overwrite {file}: choose a name that is not taken."
    )
    assert file.read_text() == "mine"
    beside = tmp_path / "other.db.keys.json"
    beside.write_text("mine")
    assert rejection(capsys, "backup", tmp_path / "other.db", "--with-keys", "--data", left) == (
        f"FILE {beside} exists: choose another name."
    )
    assert not (tmp_path / "other.db").exists()
    nowhere = tmp_path / "no" / "copy.db"
    assert rejection(capsys, "backup", nowhere, "--data", left) == (
        f"FILE {nowhere.parent} does not exist: create the directory first."
    )


def test_where_there_is_no_store_there_is_nothing_to_copy(tmp_path: Path, capsys: Said) -> None:
    assert rejection(capsys, "backup", tmp_path / "copy.db", "--data", tmp_path / "data") == (
        f"--data {tmp_path}/data has no store: name the data directory of remuda up."
    )


def test_a_store_that_is_there_is_kept_aside_and_only_if_that_is_asked_for(
    left: Path,
    tmp_path: Path,
    capsys: Said,
) -> None:
    file = tmp_path / "copy.db"
    assert run("backup", file, "--data", left) == 0
    capsys.readouterr()
    before = contents(left)
    assert rejection(capsys, "restore", file, "--data", left) == (
        f"--data {left} already has a store: add --move-aside to keep it under another name, or name another directory."
    )
    assert contents(left) == before
    assert run("restore", file, "--data", left, "--move-aside") == 0
    (aside,) = left.glob("remuda.db.before-*")
    assert str(aside) in capsys.readouterr().out
    with sqlite3.connect(aside) as old, sqlite3.connect(left / "remuda.db") as new:
        for sql in ("SELECT count(*) FROM objects", "SELECT version FROM horizon"):
            assert old.execute(sql).fetchone() == new.execute(sql).fetchone()
    assert not list(left.glob(".*restoring*"))


def test_a_damaged_backup_is_refused_and_nothing_is_changed(left: Path, tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "copy.db"
    assert run("backup", file, "--data", left) == 0
    content = bytearray(file.read_bytes())
    content[8192 * 3 : 8192 * 5] = b"\xff" * (8192 * 2)
    file.write_bytes(content)
    capsys.readouterr()
    before = contents(left)
    assert str(file) in rejection(capsys, "restore", file, "--data", left, "--move-aside")
    assert contents(left) == before
    assert not list(left.glob(".*restoring*"))


def test_a_store_that_is_damaged_is_named_and_not_its_copy(stopped: Path, tmp_path: Path, capsys: Said) -> None:
    store, file = stopped / "remuda.db", tmp_path / "copy.db"
    whole = store.read_bytes()
    with contextlib.closing(sqlite3.connect(store)) as spoiled:  # a copy can be made of it, and is as bad
        spoiled.execute("PRAGMA writable_schema = ON")
        spoiled.execute("UPDATE sqlite_schema SET sql = replace(sql, 'floor INTEGER', 'floor TEXT')")
        spoiled.commit()
    copied = rejection(capsys, "backup", file, "--data", stopped)
    assert copied.startswith(f"The store {store} is damaged (")
    content = bytearray(whole)
    content[8192 * 3 : 8192 * 5] = b"\xff" * (8192 * 2)
    store.write_bytes(content)
    assert rejection(capsys, "backup", file, "--data", stopped).startswith(f"The store {store} is damaged (")
    assert not file.exists()


def test_an_empty_file_is_no_backup(left: Path, tmp_path: Path, capsys: Said) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    said = rejection(capsys, "restore", empty, "--data", left, "--move-aside")
    assert said.startswith(f"The store {empty} is damaged (it is empty): ")


def test_how_to_start_what_was_restored_can_be_pasted(left: Path, tmp_path: Path, capsys: Said) -> None:
    file, config, other = tmp_path / "copy.db", tmp_path / "my.toml", tmp_path / "my data"
    assert run("backup", file, "--with-keys", "--data", left) == 0
    config.touch()
    keys = ("--keys", f"{file}.keys.json")
    assert run("restore", file, *keys, "--data", other, "--config", config) == 0
    assert capsys.readouterr().out.endswith(f" Start it with remuda up --data '{other}' --config {config}.\n")


def test_what_is_no_backup_is_refused(left: Path, tmp_path: Path, capsys: Said) -> None:
    text, absent = tmp_path / "text", tmp_path / "absent"
    text.write_text("hello " * 1000)
    assert str(text) in rejection(capsys, "restore", text, "--data", left, "--move-aside")
    assert rejection(capsys, "restore", absent, "--data", left).startswith(f"There is no backup {absent}")


def test_keys_that_do_not_fit_are_found_out_before_anything_is_changed(
    left: Path,
    tmp_path: Path,
    capsys: Said,
) -> None:
    file, keys = tmp_path / "copy.db", tmp_path / "keys.json"
    assert run("backup", file, "--data", left) == 0
    create_keyring_file(keys, SystemRandomness())
    capsys.readouterr()
    before = contents(left)
    told = "The keys do not decrypt the secrets in the backup: name the keys of the backup with --keys."
    assert rejection(capsys, "restore", file, "--keys", keys, "--data", left, "--move-aside") == told
    assert contents(left) == before
    empty = tmp_path / "empty"
    assert rejection(capsys, "restore", file, "--data", empty) == (
        f"--keys is required, because {empty}/keys.json does not exist: name the file with the keys of the backup."
    )
    assert not (empty / "remuda.db").exists()


def test_other_keys_that_are_there_are_kept(left: Path, tmp_path: Path, capsys: Said) -> None:
    file, other = tmp_path / "copy.db", tmp_path / "other"
    assert run("backup", file, "--with-keys", "--data", left) == 0
    other.mkdir(mode=0o700)
    create_keyring_file(other / "keys.json", SystemRandomness())
    before = (other / "keys.json").read_bytes()
    capsys.readouterr()
    assert run("restore", file, "--keys", f"{file}.keys.json", "--data", other) == 0
    (kept,) = other.glob("keys.json.before-*")
    assert kept.read_bytes() == before
    found = load_keyring(other / "keys.json")
    assert found.current == load_keyring(left / "keys.json").current
    assert found.previous == load_keyring(kept).keys, "the clouds of the directory need them"


def test_a_directory_that_cannot_be_written_to_is_one_sentence(left: Path, tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "copy.db"
    assert run("backup", file, "--data", left) == 0
    capsys.readouterr()
    (tmp_path / "file").write_text("")
    assert rejection(capsys, "restore", file, "--data", tmp_path / "file").startswith(
        f"--data {tmp_path}/file cannot be written to ("
    )
    shutil.rmtree(left)
