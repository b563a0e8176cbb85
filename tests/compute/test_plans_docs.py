"""Tables, words and example of docs/reference/plans.md are those of the code."""

import re
from pathlib import Path
from typing import get_args

import msgspec

from remuda.compute.plans.fields import FIELDS, Field
from remuda.compute.plans.schema import Attribute, Extent, PlanRead

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "plans.md").read_text()


def _names(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_example_is_the_golden_file_that_it_names() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (named,) = re.findall(r"This is `(tests/golden/plans/[\w-]+\.json)`", PAGE)
    read = [msgspec.json.decode(text, type=PlanRead) for text in (example, (ROOT / named).read_bytes())]
    assert read[0] == read[1]


def test_the_table_of_changes_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (`(?:metadata|spec|status)\..*?) \| `([\w-]+)` \|", PAGE, re.MULTILINE)
    told = {field: kind for fields, kind in rows for field in _names(fields)}
    assert told == {field: row.step for field, row in FIELDS.items()} | {"spec.protection": "in-place"}
    assert set(told) == set(get_args(Field))


def test_every_word_of_a_plan_is_explained() -> None:
    sentence = PAGE.partition("is destroyed or preserved: ")[2].partition("(running programs)")[0]
    assert _names(sentence) == list(get_args(Attribute))
    assert set(get_args(Extent)) <= set(_names(PAGE.partition("`downtime.extent`")[2].partition("`quota`")[0]))
