"""The formats that others rely on, compared with what they were.

Whatever is stored, sent or typed is in `tests/golden/formats`. A change of the program that changes a file there
changes a format, which is a mistake unless the commit is about that.
"""

import difflib
import os
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.formats import program
from tests.formats.started import metrics_of, started
from tests.formats.text import shown

GOLDEN = Path(__file__).parent / "golden" / "formats"
IS_WRITTEN = os.environ.pop("REMUDA_WRITE_FORMATS", "") == "1"
"""Taken out of the environment, because the program refuses variables of its own that it does not know."""
REMEDY = (
    "A format has changed. If that is what you want, regenerate with "
    "REMUDA_WRITE_FORMATS=1 .venv/bin/pytest tests/test_formats.py, in a commit whose subject says `format:`."
)


def compare(name: str, value: Any) -> None:
    """Fail with the difference unless a format is what it was; or write down what it is."""
    path, text = GOLDEN / f"{name}.json", f"{shown(value)}\n"
    if IS_WRITTEN:
        path.write_text(text)
    before = path.read_text() if path.exists() else ""
    if text != before:
        lines = difflib.unified_diff(before.splitlines(), text.splitlines(), path.name, "now", lineterm="")
        pytest.fail("\n".join([*lines, "", REMEDY]), pytrace=False)


@pytest.mark.parametrize("service", program.services())
def test_the_api_of_a_service_is_what_it_was(service: str) -> None:
    compare(f"openapi-{service}", program.openapi(service))


def test_the_kinds_are_what_they_were() -> None:
    compare("kinds", program.kinds())


def test_the_sagas_are_what_they_were() -> None:
    compare("sagas", program.sagas())


def test_the_errors_are_what_they_were() -> None:
    compare("errors", program.errors())


def test_the_configuration_is_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("REMUDA_"):
            monkeypatch.delenv(name)
    compare("configuration", program.configuration())


def test_the_commands_are_what_they_were() -> None:
    compare("commands", program.commands())


def until_ready(url: str) -> None:
    """Wait until a process says that it is ready: all that it counts is there then."""
    until = time.monotonic() + 30
    while httpx2.get(f"{url}/readyz").status_code != HTTPStatus.OK:
        assert time.monotonic() < until, httpx2.get(f"{url}/readyz").text
        time.sleep(0.05)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the data directory of a first start that has ended."""
    data = tmp_path_factory.mktemp("fresh") / "data"
    with started(data) as running:
        until_ready(running.url)
        code, log = running.stop()
        assert code == 0, log
    return data


def test_the_metrics_are_what_they_were(fresh: Path) -> None:
    compare("metrics", metrics_of(fresh))


def test_the_files_of_a_data_directory_are_what_they_were(fresh: Path) -> None:
    compare("data-directory", program.data_directory(fresh))


def test_the_tables_are_what_they_were(fresh: Path) -> None:
    compare("databases", program.databases(fresh))
