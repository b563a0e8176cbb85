import stat
from pathlib import Path

import pytest

from remuda.datadir import DataDirectory
from remuda.kernel.errors import Invalid, NotFound
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret


def test_a_directory_is_made_once_with_keys_that_stay(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "deep" / "data")
    sealed = data.prepare(SystemRandomness()).seal(Secret("x"), context="here")
    assert stat.S_IMODE(data.path.stat().st_mode) == 0o700
    for again in (data.prepare(SystemRandomness()), data.sealer()):
        assert again.open(sealed, context="here") == Secret("x")


def test_without_keys_nothing_is_opened(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    with pytest.raises(NotFound, match="There is no key file"):
        data.sealer()
    data.store.touch()
    with pytest.raises(Invalid, match="holds a store without its keys: restore"):
        data.prepare(SystemRandomness())


def test_an_empty_store_is_refused_where_one_was_in_use(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.prepare(SystemRandomness())
    lock = tmp_path / "remuda.db.lock"
    data.store.touch()
    lock.write_text("open\n")
    data.prepare(SystemRandomness())  # as a first start leaves it that is killed before its first write
    lock.write_text("")
    for sign in (lock, data.credentials):
        sign.touch()
        with pytest.raises(Invalid, match=r"is empty although it was in use: restore it from a backup, or remove it"):
            data.prepare(SystemRandomness())
        sign.unlink()
    data.prepare(SystemRandomness())


def test_a_process_says_where_it_answers_while_it_does(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    assert data.running_at() is None
    with data.announced("http://127.0.0.1:1", 42):
        assert data.running_at() == "http://127.0.0.1:1"
        assert stat.S_IMODE((tmp_path / "process.json").stat().st_mode) == 0o600
    assert data.running_at() is None
    (tmp_path / "process.json").write_bytes(b"\xff{")
    assert data.running_at() is None


def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    absent = DataDirectory(tmp_path / "absent")
    with pytest.raises(Invalid, match=r"process\.json cannot be written \(No such file"), absent.announced("", 1):
        raise AssertionError("it was not announced")
