"""Help texts: every command has one sentence and an example, and the page about the CLI has every command.

`tests/golden/texts/cli.txt` holds all help texts as a terminal of 80 columns shows them. Write it again with
`REMUDA_WRITE_GOLDEN=1 pytest tests/cli/test_help.py`.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from remuda.cli import main
from remuda.cli.app import OPERATOR_COMMANDS, OPERATOR_NOUNS, USER_COMMANDS, USER_NOUNS, command_name

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "cli.md"
FROZEN = ROOT / "tests" / "golden" / "formats" / "commands.json"
TEXTS = ROOT / "tests" / "golden" / "texts" / "cli.txt"
NOUNS = {**USER_NOUNS, **OPERATOR_NOUNS}
COMMON = {"--output", "--context", "--organization", "--project"}
"""Explained once on the page, for all commands that send requests."""


def commands() -> Iterator[tuple[str, ...]]:
    """Yield every command."""
    yield from ((command_name(function),) for function in (*USER_COMMANDS, *OPERATOR_COMMANDS))
    for noun, (_, functions) in NOUNS.items():
        yield from ((noun, command_name(function)) for function in functions)


def help_of(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*command, "--help"]) == 0
    return capsys.readouterr().out


def explained(text: str) -> dict[str, str]:
    """Return the text of each argument and option of a command."""
    found = dict[str, str]()
    for label, about in re.findall(
        r"^  (\S.*?)(?:  +|\n {4,})(\S.*)$", text.partition("\n\nArguments:")[2] or text, re.MULTILINE
    ):
        name = re.search(r"--[\w-]+|[A-Z]+", label)
        if name is not None and (name[0].startswith("--") or name[0].isupper()):
            found[name[0]] = about
    return found


def on_page() -> dict[tuple[str, ...], tuple[str, set[str]]]:
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


@pytest.mark.parametrize("command", [*commands()], ids=" ".join)
def test_a_command_has_one_imperative_sentence_and_an_example(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    text = help_of(command, capsys)
    usage, _, sentence, *_ = text.splitlines()
    assert usage.startswith(f"Usage: remuda {' '.join(command)}")
    assert re.fullmatch(r"[A-Z][a-z]+ .*\.", sentence)
    assert f"\nExample:\n  remuda {' '.join(command)}" in text
    parameters = json.loads(FROZEN.read_text())["commands"][" ".join(command)]
    about = explained(text)
    names = {each["names"][0] for each in parameters}
    assert {name.split()[0] for name in about} >= {name.lower() if name.startswith("--") else name for name in names}
    assert [name for name, text in about.items() if not re.match(r"[A-Z][^.]{5,}.*[.?]", text)] == []


def test_all_help_texts_are_those_of_the_golden_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    nouns = [(noun,) for noun in NOUNS]
    everything = [(), *sorted([*commands(), *nouns])]
    text = "\n".join(f"$ {' '.join(['remuda', *each, '--help'])}\n{help_of(each, capsys)}" for each in everything)
    assert max(map(len, text.splitlines())) <= 80
    if os.environ.get("REMUDA_WRITE_GOLDEN"):
        TEXTS.parent.mkdir(exist_ok=True)
        TEXTS.write_text(text)
    assert text == TEXTS.read_text()


def test_the_page_has_every_command_with_its_argument_and_its_options() -> None:
    frozen = json.loads(FROZEN.read_text())["commands"]
    assert sorted(on_page()) == sorted(tuple(command.split()) for command in frozen) == sorted(commands())
    for command, parameters in frozen.items():
        words = tuple(command.split())
        line, named = on_page()[words]
        names = [each["names"][0] for each in parameters]
        shared = COMMON if words[0] in USER_NOUNS and words[0] != "context" else set()
        assert named == {name for name in names if name.startswith("--")} - shared, command
        assert re.findall(r"\b[A-Z]+\b", line) == [name for name in names if not name.startswith("--")], command


def test_the_list_of_commands_tells_users_from_operators(capsys: pytest.CaptureFixture[str]) -> None:
    users, operators = help_of((), capsys).split("User commands:\n")[1].split("Operator commands:\n")
    assert all(f"  {noun} " in users for noun in USER_NOUNS)
    assert "  up " in operators
    assert "Commands:\n" in help_of(("instance",), capsys)
