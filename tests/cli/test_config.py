from pathlib import Path

import pytest

from remuda.cli import main
from tests.kit.processes.program import refused


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "some.toml"


def test_show_prints_what_is_in_effect(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[server]\nrate_limit = 7\n[identity.bootstrap]\npassword = 'correct horse battery'")
    assert main(["config", "show", "--config", str(file), "--listen", "[::1]:1"]) == 0
    shown = capsys.readouterr().out
    assert f"rate_limit = 7  # {file}\n" in shown
    assert 'listen = "[::1]:1"  # --listen\n' in shown
    assert "correct horse" not in shown


def test_check_says_that_it_is_good_or_everything_that_is_not(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[server]\nrate_limit = 7")
    assert main(["config", "check", "--config", str(file)]) == 0
    assert capsys.readouterr().out == f"The configuration is valid. File: {file}.\n"
    file.write_text("[server]\nrate_limit = 0\nlissten = ''")
    assert main(["config", "check", "--config", str(file)]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.splitlines() == [
        f"server.rate_limit in {file} is not positive: write a whole number of at least 1.",
        f"server.lissten in {file} is not a setting: did you mean server.listen?",
    ]
    file.write_text("identity.role_bindings = [{ subject = 'A@b.c', roles = ['platform-reader'] }]")
    assert main(["config", "check", "--config", str(file)]) == 1
    assert capsys.readouterr().err.startswith("identity.role_bindings[0].subject has capital letters: ")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one sentence of a process that does not begin."""
    assert main(["up", *words]) == 1
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    return error.strip()


def test_a_configuration_that_cannot_be_used_is_one_sentence_and_nothing_is_made(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_file = ("--config", str(file))
    file.write_text("[identity]\nisuer = 'x'")
    told = f"identity.isuer in {file} is not a setting: did you mean identity.issuer?"
    assert said(capsys, *with_file) == told
    monkeypatch.setenv("REMUDA_CONFIG", str(file))
    assert said(capsys) == told
    file.write_text("[identity")
    assert "is not TOML (" in said(capsys, *with_file)
    file.unlink()
    assert said(capsys, *with_file).endswith(
        "cannot be read (No such file or directory): name an existing, readable file."
    )
    monkeypatch.delenv("REMUDA_CONFIG")
    monkeypatch.setenv("REMUDA_IDENTITY__BOOTSTRAP__PASSWORD", "short")
    assert said(capsys).startswith("identity.bootstrap.password is too short: ")
    monkeypatch.setenv("REMUDA_IDENTITY__ISUER", "x")
    assert said(capsys).endswith("did you mean REMUDA_IDENTITY__ISSUER?")
    assert not (file.parent / "remuda").exists()


def test_a_role_that_there_is_not_is_one_sentence(tmp_path: Path) -> None:
    bindings = {"REMUDA_IDENTITY__ROLE_BINDINGS": '[{ subject = "a@b.c", roles = ["cook"] }]'}
    told = refused(tmp_path / "data", environment=bindings)
    assert "role_bindings[0].roles names the role cook, which does not exist: use one of " in told
