import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from remuda.version import describe, revision_of


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "src" / "remuda"
    folder.mkdir(parents=True)
    return folder


def test_the_written_revision_wins(package: Path) -> None:
    (package / "_revision.txt").write_text("0123456789ab\n")
    assert revision_of(package) == "0123456789ab"


def test_a_checkout_answers_with_its_head(package: Path, tmp_path: Path) -> None:
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "--message", "first")
    assert revision_of(package) == git(tmp_path, "rev-parse", "HEAD")[:12]


def test_a_checkout_without_a_commit_has_no_revision(package: Path, tmp_path: Path) -> None:
    git(tmp_path, "init")
    assert revision_of(package) == "unknown"


def test_a_machine_without_git_has_no_revision(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision_of(package) == "unknown"


def test_a_package_inside_a_foreign_checkout_has_no_revision(tmp_path: Path) -> None:
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "--message", "foreign")
    installed = tmp_path / "site-packages" / "remuda"
    installed.mkdir(parents=True)
    assert revision_of(installed) == "unknown"


def test_the_description_is_of_the_installed_release() -> None:
    described = describe()
    assert (described.name, described.version) == ("remuda", version("remuda"))
    assert str(described) == f"remuda {described.version} (revision {described.revision})"
