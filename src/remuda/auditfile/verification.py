"""Verification of audit files: whether a line was changed, is missing, was moved, or was cut off at the end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from remuda.auditfile.chain import Chain, ChainLine, Link
from remuda.kernel.errors import Invalid


@dataclass(frozen=True, slots=True)
class IntactLines:
    """The sequences of the first and the last line of files in which nothing is wrong; both 0 if there is none."""

    first: int
    last: int
    is_last_partial: bool
    """Whether the end of the last line is missing: it was being written, or the process has crashed."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """The first line that is wrong, by its number in its file, and what is wrong with it."""

    file: Path
    number: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.problem}"


def verify(chain: Chain, files: Sequence[Path], head: Link | None, *, first: int = 1) -> IntactLines | BadLine:
    """Verify files, the oldest first. They must begin with record `first` and, with a head, reach it.

    The MAC of the record before `first` is not known, unless that is the first of all.
    """
    begin = Link() if first == 1 else Link(sequence=first - 1, mac="")
    end, at, is_partial = begin, BadLine(files[-1], 0, ""), False
    for file, number, line, is_whole in _lines(files):
        at = BadLine(file, number, "")
        if is_partial:
            return BadLine(file, number, "the line before it is not complete")
        if not is_whole:
            is_partial = True
            continue
        found = chain.read(line)
        if found is None:
            return BadLine(file, number, "the line was changed, or is not of this installation")
        if problem := _problem(found[0], end):
            return BadLine(file, number, problem)
        end = found[1]
    if head is not None and end.sequence < head.sequence:
        problem = f"{_records(end.sequence + 1, head.sequence)} cut off at the end"
        return BadLine(at.file, at.number + (not is_partial), problem)
    return IntactLines(0, 0, is_partial) if end is begin else IntactLines(first, end.sequence, is_partial)


def _problem(line: ChainLine, end: Link) -> str:
    expected = end.sequence + 1
    if line.sequence > expected:
        return f"{_records(expected, line.sequence - 1)} missing before it"
    if line.sequence < expected:
        return f"record {line.sequence} is here and record {expected} was to be: a line was moved or repeated"
    return "" if end.mac in {"", line.previous} else "the line does not continue the one before it"


def _records(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"


def _lines(files: Sequence[Path]) -> Iterator[tuple[Path, int, bytes, bool]]:
    for path in files:
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    yield path, number, line.removesuffix(b"\n"), line.endswith(b"\n")
        except OSError as error:
            cause = error.strerror or str(error)
            raise Invalid("FILE", f"{path} cannot be read ({cause})", remedy="name a file that exists") from None
