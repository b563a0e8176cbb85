"""What commands say about themselves, and that the page about them says the same."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from remuda.cli import main
from remuda.cli.app import ALONE, NOUNS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
FROZEN = Path(__file__).parents[1] / "golden" / "formats" / "commands.json"
COMMON = {"--output", "--context", "--organization", "--project"}
"""Explained once on the page, for all commands that ask."""


def commands() -> Iterator[tuple[str, ...]]:
    """Yield what a user can type."""
    for function, _ in ALONE:
        yield (name_of(function),)
    for noun, (_, below) in NOUNS.items():
        yield from ((noun, name_of(function)) for function, _ in below)


def name_of(function: str) -> str:
    return function.rpartition(":")[2].strip("_").replace("_", "-")


def help_of(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*command, "--help"]) == 0
    return capsys.readouterr().out


def explained(text: str) -> dict[str, str]:
    """Return what a help text says of each argument and option."""
    return dict(re.findall(r"^│ [* ]*(--[\w-]+|[A-Z]+)\b(.*?)│$", text, re.MULTILINE))


def told() -> dict[tuple[str, ...], tuple[str, set[str]]]:
    """Return the commands of the page, each with its argument and its options."""
    rows = re.findall(r"^\| `remuda ([^`]+)` \| (.*)\|$", PAGE.read_text(), re.MULTILINE)
    found: dict[tuple[str, ...], tuple[str, set[str]]] = {}
    before: set[str] = set()
    for line, options in rows:
        words = tuple(word for word in line.split() if word.islower())
        named = set(re.findall(r"`(--[\w-]+)`", options)) | (before if "the same" in options else set())
        before = named
        found[words] = (line, named)
    return found


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.parametrize("command", [*commands()], ids=" ".join)
def test_a_command_says_what_it_does_and_so_does_the_page(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    text = help_of(command, capsys)
    usage, _, sentence, *_ = text.splitlines()
    assert usage.startswith(f"Usage: remuda {' '.join(command)}")
    assert re.fullmatch(r"[A-Z].*\.", sentence.strip())
    real = explained(text)
    assert [name for name, about in real.items() if not re.search(r"  [A-Z][^.]{5,}.*[.?]", about)] == []
    line, named = told()[command]
    shared = set() if command[0] in {"login", "logout", "context"} else COMMON
    assert named == {name for name in real if name.startswith("--")} - shared
    assert re.findall(r"\b[A-Z]+\b", line) == [name for name in real if not name.startswith("--")]


def test_the_page_has_every_command_with_its_argument_and_its_options() -> None:
    frozen = json.loads(FROZEN.read_text())["commands"]
    assert sorted(told()) == sorted(tuple(command.split()) for command in frozen)
    for command, parameters in frozen.items():
        words = tuple(command.split())
        line, named = told()[words]
        names = [each["names"][0] for each in parameters]
        shared = COMMON if words[0] in NOUNS and words[0] != "context" else set()
        assert named == {name for name in names if name.startswith("--")} - shared, command
        assert re.findall(r"\b[A-Z]+\b", line) == [name for name in names if not name.startswith("--")], command


def test_the_list_of_commands_tells_using_from_running(capsys: pytest.CaptureFixture[str]) -> None:
    using, running = help_of((), capsys).split("─ Commands to use it ─")[1].split("─ Commands to run it ─")
    assert all(f"│ {noun} " in using for noun in NOUNS)
    assert "│ up " in running
    assert "─ Commands ─" in help_of(("instance",), capsys)
