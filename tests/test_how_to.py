"""The how-to pages: checklists name files that exist, and no more than a change may touch; examples can be used."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path

import pytest

from remuda.config.loader import load

ROOT = Path(__file__).parents[1]
HOW_TO = ROOT / "docs" / "how-to"
CHECKLISTS = sorted(HOW_TO.glob("add-*.md"))
MOST: Mapping[str, int] = {
    "add-a-kind": 12,
    "add-a-field": 10,
    "add-an-endpoint": 2,
    "add-an-operation": 2,
    "add-a-provider": 5,
    "add-a-command": 2,
}
"""How many source files a typical change may touch."""
COUNTED: Mapping[str, tuple[int, int]] = {"add-a-kind": (11, 5), "add-a-field": (9, 6), "add-an-endpoint": (2, 1)}
"""How many source files the typical change touches, and how many more some changes do, as the pages say."""

_ROW = re.compile(r"^\| `((?:src|tests|pyproject)[\w<>/.-]*)`", re.MULTILINE)
_PLACEHOLDER = re.compile(r"`(<\w+>)` = `(\w+)`")
_TOML = re.compile(r"^( *)```toml\n(.*?)```", re.DOTALL | re.MULTILINE)


def whole_section(page: Path, heading: str) -> str:
    return page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def section(page: Path, heading: str) -> str:
    """Return the first table under a heading."""
    below = whole_section(page, heading)
    return below[below.index("|") :].partition("\n\n")[0]


def filled_in(page: Path, path: str) -> str:
    """Return a path with the placeholders of the page's example filled in."""
    return reduce(lambda text, pair: text.replace(*pair), _PLACEHOLDER.findall(page.read_text()), path)


def files() -> Iterator[tuple[str, str]]:
    for page in CHECKLISTS:
        for path in _ROW.findall(page.read_text()):
            yield page.stem, filled_in(page, path)


def test_there_is_a_checklist_for_each_sort_of_change() -> None:
    assert {page.stem for page in CHECKLISTS} == set(MOST)


@pytest.mark.parametrize(("page", "path"), [*files()])
def test_every_file_of_a_checklist_exists(page: str, path: str) -> None:
    assert "<" not in path, f"{page} gives no example of {path}"
    assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", CHECKLISTS, ids=lambda page: page.stem)
def test_a_checklist_names_no_more_files_than_a_change_may_touch(page: Path) -> None:
    source, tests = _ROW.findall(section(page, "Source files")), _ROW.findall(section(page, "Tests"))
    assert 1 < len(source) <= MOST[page.stem]
    assert len({*source}) == len(source)
    assert all(path.startswith(("src/remuda/", "pyproject.toml")) for path in source)
    assert tests
    assert all(path.startswith("tests/") for path in tests)


@pytest.mark.parametrize("name", COUNTED)
def test_a_checklist_says_how_many_files_it_names_and_how_many_more(name: str) -> None:
    page, (typical, more) = HOW_TO / f"{name}.md", COUNTED[name]
    named, further = _ROW.findall(section(page, "Source files")), _ROW.findall(whole_section(page, "Source files"))
    assert (len(named), len({*further})) == (typical, typical + more)
    assert re.search(rf"\b{typical} files\b", page.read_text())
    assert re.search(rf"\b{more} more\b", page.read_text())


NAMED_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    r"allowed_source_addresses|allowedSourceAddresses": {
        "compute/instances/server_lookup.py": "checks stored prefixes",
    },
    r"ssh_certificate_authority_id|sshCertificateAuthorityId": {
        "compute/instances/actions.py": "tells how to log in without a key",
        "compute/instances/status.py": "reads it from the status of the server, where region has it",
        "compute/instances/updates.py": "converts an empty text to None",
        "cli/crud.py": "shows the name of the object that it names",
        "cli/commands/instance_actions.py": "says why there is no key",
        "region/servers/controller.py": "reads the object that it names",
        "region/servers/service.py": "checks the object that it names",
    },
}
"""Files that name a field and are not on the checklist, each with what is special about the field there."""


@pytest.mark.parametrize("names", NAMED_ELSEWHERE)
def test_the_checklist_of_a_field_has_every_file_that_names_one(names: str) -> None:
    source = ROOT / "src" / "remuda"
    naming = {str(path.relative_to(source)) for path in source.rglob("*.py") if re.search(names, path.read_text())}
    listed = _ROW.findall(whole_section(HOW_TO / "add-a-field.md", "Source files"))
    assert naming - {path.removeprefix("src/remuda/") for path in listed} == set(NAMED_ELSEWHERE[names])


def configurations() -> Iterator[tuple[str, str]]:
    for page in sorted(HOW_TO.glob("*.md")):
        for number, (_, text) in enumerate(_TOML.findall(page.read_text()), start=1):
            yield f"{page.stem}-{number}", text


@pytest.mark.parametrize(("name", "text"), [*configurations()], ids=lambda value: value if "\n" not in value else "")
def test_an_example_of_a_configuration_can_be_loaded(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "remuda.toml"
    path.write_text(text)
    configuration = load({}, file=path).configuration
    for section_name, settings in tomllib.loads(text).items():
        for setting in settings:
            assert reduce(getattr, (section_name, setting), configuration), f"{name}: {section_name}.{setting}"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub derives them from its headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^):]+)\)", page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link


def test_the_index_lists_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    linked = set(re.findall(r"\]\(([^):#]+)\)", index.read_text()))
    kinds = ("tutorial", "how-to", "reference", "explanation")
    there = {str(page.relative_to(index.parent)) for kind in kinds for page in (index.parent / kind).glob("*.md")}
    there |= {page.name for page in index.parent.glob("*.md")} - {index.name}
    assert linked == there
