import subprocess
import sys

import pytest

import remuda.version
from remuda.cli import main
from remuda.kernel.errors import StoreLocked
from remuda.version import ServiceDescriptor

HEAVY = ("aiohttp", "apsw", "cryptography", "lightkube", "rich")


def modules_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stderr.split())


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    for module in ("remuda.cli", "remuda.cli.app"):
        assert not modules_after(f"import {module}") & set(HEAVY)


def test_the_version_is_answered_without_the_command_line_library() -> None:
    loaded = modules_after("from remuda.cli import main; main(['--version'])")
    assert not loaded & {*HEAVY, "cyclopts", "asyncio", "msgspec"}


def test_version_prints_name_version_and_revision(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remuda.version, "describe", lambda: ServiceDescriptor("remuda", "0.1.0", "abc"))
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "remuda 0.1.0 (revision abc)\n"


def test_the_installed_script_prints_the_version() -> None:
    script = f"{sys.prefix}/bin/remuda"
    result = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"{remuda.version.describe()}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_is_shown_when_asked_for_or_when_nothing_is(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 0
    assert "Usage: remuda" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["up"], "The first start makes an administrator"),
        (["token", "issue"], "It is audited, with the name of who asks."),
        (["token"], "Print a short-lived token in a user's name."),
        ([], "Run everything in one process, on one file."),
    ],
)
def test_a_command_explains_itself_in_full_and_a_list_in_a_line(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main([*words, "--help"]) == 0
    assert told in " ".join(capsys.readouterr().out.split())


def test_an_unknown_command_ends_with_a_message_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["nonsense"])
    assert caught.value.code
    shown = capsys.readouterr()
    assert "nonsense" in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err


def test_an_error_of_ours_prints_its_sentence_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: list[str]) -> int:
        raise StoreLocked("/data/a.db")

    monkeypatch.setattr("remuda.cli._command", fail)
    assert main(["serve"]) == 1
    assert capsys.readouterr() == ("", f"{StoreLocked('/data/a.db')}\n")


def test_a_defect_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: list[str]) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("remuda.cli._command", fail)
    with pytest.raises(ZeroDivisionError):
        main(["serve"])
