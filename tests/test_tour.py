"""The tour of the README and the tutorial: every command is typed, and prints what the page shows.

A `console` block holds commands, each after `$ `, and under each what it prints. A line of three dots stands for any
number of lines. What differs from play to play (ids, times, progress) is in `tour_patterns.txt`.

When a text of the program changes, `REMUDA_WRITE_GOLDEN=1 pytest tests/test_tour.py` writes every page that shows
something else again. Lines that three dots left out stay left out; read the difference before committing it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from tests.kit.processes.program import running
from tests.kit.processes.shell import Shell

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PLAYED = (ROOT / "docs" / "tutorial" / "first-instance.md", ROOT / "docs" / "tutorial" / "over-http.md")
"""Pages that are played one after the other in one shell."""
PATTERNS = Path(__file__).with_name("tour_patterns.txt")

HOME, URL = "/home/ann", "http://127.0.0.1:8080"
"""As the pages show them."""
START = "make up"
IS_WRITING = bool(os.environ.get("REMUDA_WRITE_GOLDEN"))
DOTS = "..."

_BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
_STEP = re.compile(r"^\$ (.*(?:(?:\\\n|\n    ).*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command of a page and the lines under it."""

    command: str
    shown: Sequence[str]


class Patterns:
    """The file of patterns."""

    def __init__(self, text: str) -> None:
        rules = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
        self._names = [(name, re.compile(pattern)) for name, pattern in rules if name != "drop"]
        self._dropped = [re.compile(pattern) for name, pattern in rules if name == "drop"]

    def compared(self, lines: Sequence[str]) -> list[str]:
        """Return what of these lines is the same in every play."""
        return [self._named(line) for line in self.lasting(lines)]

    def lasting(self, lines: Sequence[str]) -> list[str]:
        """Return these lines without those that are not compared."""
        return [line for line in lines if not any(rule.fullmatch(line) for rule in self._dropped)]

    def agrees(self, step: "Step", printed: Sequence[str]) -> bool:
        """Tell whether a command printed what its page shows."""
        return is_shown(self.compared(step.shown), self.compared(printed))

    def rewritten(self, step: "Step", printed: Sequence[str]) -> list[str]:
        """Return what a page shows from now on: no progress where it left that out, and dots where it had them."""
        has_progress = self.lasting(step.shown) != list(step.shown)
        return abridged(step.shown, printed if has_progress else self.lasting(printed))

    def _named(self, line: str) -> str:
        for name, pattern in self._names:
            line = pattern.sub(f"<{name}>", line)
        return re.sub(r" {2,}", "  ", line).rstrip()


def steps_of(text: str) -> Iterator[Step]:
    for block in _BLOCK.findall(text):
        assert block.startswith("$ "), block
        for command, shown in _STEP.findall(block):
            yield Step(command, shown.rstrip("\n").split("\n") if shown.strip() else [])


def groups(lines: Sequence[str]) -> list[list[str]]:
    """Return the lines between the dots."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line == DOTS:
            found.append([])
        else:
            found[-1].append(line)
    return found


def is_shown(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Tell whether a command printed what a page shows, where the dots stand for any lines."""
    pattern = r"(?:.*\n)*?".join("".join(f"{re.escape(line)}\n" for line in group) for group in groups(shown))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def abridged(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return what a command printed with dots where the page had them, as far as that can be told."""
    first, *rest = groups(shown)
    if not rest:
        return list(printed)
    kept, begin, last = list(printed[: len(first)]), len(first), rest.pop()
    for group in rest:
        ends = range(begin, len(printed) - len(last) - len(group) + 1)
        best = max(ends, key=lambda at: likeness(group, printed[at : at + len(group)]), default=begin)
        kept += [DOTS, *printed[best : best + len(group)]]
        begin = best + len(group)
    return [*kept, DOTS, *printed[len(printed) - len(last) :]]


def likeness(left: Sequence[str], right: Sequence[str]) -> float:
    return SequenceMatcher(None, "\n".join(left), "\n".join(right)).ratio()


def written(page: str, outputs: Sequence[Sequence[str]]) -> str:
    """Return a page with other output under each of its commands."""
    left = iter(outputs)

    def block(match: re.Match[str]) -> str:
        return "".join(
            f"$ {step[1]}\n" + "".join(f"{line}\n" for line in next(left)) for step in _STEP.finditer(match[0])
        )

    return _BLOCK.sub(block, page)


@pytest.mark.parametrize(
    ("shown", "is_so"),
    [
        (["a", "b", "c"], True),
        (["a", "...", "c"], True),
        (["...", "b", "...", "c"], True),
        (["a", "b", "c", "..."], True),
        (["a", "c"], False),
        (["a", "...", "d"], False),
        (["...", "b"], False),
    ],
)
def test_dots_stand_for_any_lines(shown: list[str], is_so: bool) -> None:  # noqa: FBT001
    assert is_shown(shown, ["a", "b", "c"]) is is_so


def test_what_is_written_again_keeps_its_dots() -> None:
    before = ["head", "...", "beta was 1", "...", "end"]
    assert abridged(before, ["Head", "alpha", "beta is 2", "gamma", "End"]) == [
        "Head",
        "...",
        "beta is 2",
        "...",
        "End",
    ]


def test_what_differs_from_play_to_play_is_not_compared() -> None:
    patterns = Patterns(PATTERNS.read_text())
    first = ["web is pending", "web   10.0.0.7   2026-11-18 08:51", "ID  e67e6ac8-39b1-5cf7-bd57-e46e3d9b903b"]
    second = ["web  10.0.0.199  2027-01-02 10:00", "ID  fe9628f8-558c-531f-ad93-4466a7ca80d2"]
    assert patterns.compared(first) == patterns.compared(second)
    assert patterns.compared(["web  gone"]) != patterns.compared(["web  there"])


def test_every_command_of_the_tour_prints_what_the_pages_show(tmp_path: Path) -> None:
    played = play([list(steps_of(page.read_text())) for page in PLAYED], tmp_path)
    printed = {step.command: lines for page in played for step, lines in page}
    pages = [
        *zip(PLAYED, played, strict=True),
        (README, [(each, printed[each.command]) for each in steps_of(README.read_text())]),
    ]
    assert sum(len(steps) for _, steps in pages) > len(pages) * 5
    patterns = Patterns(PATTERNS.read_text())
    for page, steps in pages:
        wrong = [
            f"{step.command}\nprints\n" + "\n".join(lines) for step, lines in steps if not patterns.agrees(step, lines)
        ]
        if wrong and IS_WRITING:
            page.write_text(written(page.read_text(), [patterns.rewritten(*each) for each in steps]))
            continue
        assert not wrong, f"{page.name}: " + "\n\n".join(wrong)


def play(pages: Sequence[Sequence[Step]], home: Path) -> list[list[tuple[Step, list[str]]]]:
    """Type all commands, and return them with what each printed."""
    with running(home / ".local" / "share" / "remuda") as process, closing(Shell(ROOT, home)) as shell:

        def typed(command: str) -> list[str]:
            if command == START:
                printed = (
                    f"{process.said}Remuda is ready at {process.url} (data in {process.data}). Stop it with Ctrl-C."
                )
            else:
                printed = shell.type(command.replace(URL, process.url))
            return (
                printed.strip()
                .replace(process.url, URL)
                .replace(str(home), HOME)
                .replace(str(ROOT), f"{HOME}/remuda")
                .splitlines()
            )

        played = [[(step, typed(step.command)) for step in page] for page in pages]
        assert process.stop()[0] == 0
        return played
