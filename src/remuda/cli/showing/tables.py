"""Tables that a person likes: aligned, without lines, and as wide as they have to be."""

from collections.abc import Mapping, Sequence

from remuda.cli.output import show


def as_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text."""
    lines = [tuple(headings), *(tuple(map(_one_line, row)) for row in rows)]
    return as_rows(lines, [max(map(len, column)) for column in zip(*lines, strict=True)])


def as_rows(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Return rows as text, with columns of at least these widths."""
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def as_facts(facts: Mapping[str, str]) -> str:
    """Return a line for each fact that there is, with its heading before it."""
    known = [(_titled(heading), _one_line(value)) for heading, value in facts.items() if value]
    return as_rows(known, [max((len(heading) for heading, _ in known), default=0), 0])


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print a table, or what to say where there is nothing to put into it."""
    show(as_table(headings, rows) if rows else f"{empty}\n")


def _one_line(text: str) -> str:
    """Return what somebody else wrote as it can stand in a line: nothing in it moves the cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _titled(heading: str) -> str:
    """Return a heading as the beginning of a line: what stands for words stays as it is."""
    first, *rest = heading.split(" ")
    if first == "CPUS":
        first = "CPUs"
    return " ".join([first if first in _INITIALS else first.capitalize(), *(_lower(word) for word in rest)])


def _lower(word: str) -> str:
    return word if word in _INITIALS else word.lower()


_INITIALS = {"CA", "CPUs", "DNS", "GPU", "ID", "IP", "MAC", "SSH"}
