import os
import subprocess
import sys
from pathlib import Path

import pytest

import remuda.version
from remuda.cli import main
from remuda.kernel.errors import StoreLocked
from remuda.version import ServiceDescriptor
from tests.kit.processes.program import remuda as command

ROOT = Path(__file__).parents[2]
REMUDA = f"{sys.executable} -c 'import sys; from remuda.cli import main; sys.exit(main())'"
HEAVY = ("aiohttp", "apsw", "cryptography", "lightkube", "rich")


def modules_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stderr.split())


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    for module in ("remuda.cli", "remuda.cli.app"):
        assert not modules_after(f"import {module}") & set(HEAVY)


def test_services_in_one_process_import_no_http_client() -> None:
    assert not modules_after("import remuda.app.services") & {"httpx2", "httpcore2", "h2"}


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
        (["up"], "The first start creates an administrator"),
        (["token", "issue"], "is audited with your name."),
        (["token"], "Print a short-lived token that acts as a user, for operators on the machine itself."),
        (["sim", "fail"], "Report this reason."),
        (["sim"], "Move a server to another host."),
        ([], "Run all services in one process until Ctrl-C or SIGTERM."),
    ],
)
def test_a_command_explains_itself_in_full_and_a_list_in_a_line(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main([*words, "--help"]) == 0
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["nonsense"],
            'Unknown command "nonsense". Available commands: login, ',
        ),
        (["tokn"], 'Unknown command "tokn". Did you mean "token"? '),
        (["token", "isue"], 'Unknown command "isue". Did you mean "issue"? '),
        (
            ["up", "--lissten", "x"],
            "Unknown option: --lissten. Did you mean --listen? See remuda up --help.",
        ),
        (["up", "--listen"], "--listen requires a value. See remuda up --help."),
        (["up", "extra"], "Unexpected argument 'extra'. See remuda up --help."),
        (["instance", "show"], "INSTANCE requires a value. See remuda instance show --help."),
        (["up", "--data", "a", "--data", "b"], "Parameter --data specified multiple times. See remuda up --help."),
    ],
)
def test_what_cannot_be_understood_is_told_on_one_line_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(words) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert error.startswith(told)


def test_ctrl_c_is_no_defect(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("remuda.cli._command", interrupted)
    assert main(["up"]) == 130
    assert capsys.readouterr() == ("", "")


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=120, check=False
    )


def test_who_reads_only_the_beginning_is_told_nothing_else() -> None:
    for words, first in (("openapi identity", "{"), ("--help", "Usage: remuda COMMAND")):
        told = shell(f"{REMUDA} {words} | head -1")
        assert (told.returncode, told.stdout, told.stderr) == (0, f"{first}\n", "")


@pytest.mark.parametrize("words", ["--version", "--help", "instance --help"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_left_to_be_printed_is_not_complained_about(words: str, unbuffered: str) -> None:
    told = shell(f"PYTHONUNBUFFERED={unbuffered} {REMUDA} {words} > /dev/full")
    assert (told.returncode, told.stderr.count("\n")) == (1, 1), told.stderr


def test_what_is_no_text_is_refused_by_its_name() -> None:
    told = shell(f"{REMUDA} network create $'n\\xff' --region sim-north")
    said = "The argument n\\xff is not valid UTF-8: correct it, or check what produced it.\n"
    assert (told.returncode, told.stdout, told.stderr) == (2, "", said)


@pytest.mark.parametrize("words", [["--version"], ["config", "show"], ["openapi", "process"], ["--help"]])
def test_what_cannot_be_printed_is_one_sentence(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        told = command(*words, stdout=full)
    assert told.returncode == 1
    assert told.stderr == ("The output cannot be written (No space left on device): redirect stdout to where it can.\n")


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


def test_make_up_passes_on_what_it_is_told() -> None:
    given = ["DATA=/a b/c", "LISTEN=127.0.0.1:1", "CONFIG=d.toml"]
    tls = ["TLS=self-signed", "URL=https://a.example.com:1"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for more, options in ([], ""), (tls, ' --tls "self-signed" --public-url "https://a.example.com:1"'):
        command = ["make", "-n", "--no-print-directory", "up", *given, *more]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=alone)
        last = told.stdout.splitlines()[-1]
        assert last == f'.venv/bin/remuda up --data "/a b/c" --listen "127.0.0.1:1"{options} --config "d.toml"'
