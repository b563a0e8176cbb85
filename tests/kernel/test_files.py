import os
import stat
from pathlib import Path

import pytest

from remuda.kernel.files import move_over, write_private


def test_what_is_written_is_private_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"first", b"second"):
        write_private(path, content)
        assert path.read_bytes() == content
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208  no temporary file is left behind


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_private(path, b"first")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208  no temporary file is left behind


def test_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    move_over(tmp_path / "new", tmp_path / "old")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("old", "new")]
    with pytest.raises(FileNotFoundError):
        move_over(tmp_path / "new", tmp_path / "old")
