"""The formats that others rely on, compared with what they were.

Whatever is stored, sent or typed is in `tests/golden/formats`. A change of the program that changes a file there
changes a format, which is a mistake unless the commit is about that.
"""

import contextlib
import difflib
import os
import shutil
import tarfile
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

from tests.formats import program, source
from tests.formats.started import metrics_of, started
from tests.formats.text import shown
from tests.kit.processes.program import remuda

GOLDEN = Path(__file__).parent / "golden" / "formats"
DATA = GOLDEN / "data-205e8be.tar.xz"
"""The data directory of commit 205e8be, stopped with SIGTERM.

It has a network with a security group, an SSH certificate authority, the instance `web`, which is provisioned, the
instance `late`, which was being made, and the operation of a network that the quota refused."""
IS_WRITTEN = os.environ.get("REMUDA_WRITE_GOLDEN") == "1"
"""Taken out of the environment, because the program rejects variables of its own that it does not know."""
REMEDY = (
    "A format has changed. If that is what you want, regenerate with "
    "REMUDA_WRITE_GOLDEN=1 .venv/bin/pytest tests/test_formats.py, in a commit whose subject says `format:`."
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
    until(lambda: httpx2.get(f"{url}/readyz").status_code == HTTPStatus.OK)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.05)


def test_the_conditions_are_what_they_were() -> None:
    compare("conditions", source.conditions())


def test_the_timeline_is_what_it_was() -> None:
    compare("timeline", {**source.timeline(), "streams": source.streams(), "records": program.records()})


def test_the_names_and_ids_are_what_they_were() -> None:
    derived = {"made of": source.derived_ids(), "examples": program.ids()}
    compare("names", {"at a provider": program.names(), "derived ids": derived})


def test_the_words_that_are_stored_or_sent_are_what_they_were() -> None:
    told = {"sealed": source.sealed_contexts(), "events of a stream": source.stream_events()}
    compare("words", {**told, **source.literals()})


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


@pytest.fixture
def old_data(tmp_path: Path) -> Path:
    """Return a data directory of commit 205e8be, which wrote format 1."""
    data = tmp_path / "data"
    with tarfile.open(DATA) as archive:
        archive.extractall(data, filter="data")
    return data


REJECTED = (
    "has format 1, and this program reads format 4. No released version wrote format 1: "
    "start with an empty data directory, or run the revision that wrote it."
)


@pytest.mark.parametrize("command", ["up", "doctor", "backup", "restore", "sim stop"])
def test_data_of_commit_205e8be_is_rejected_and_left_as_it_is(command: str, old_data: Path, tmp_path: Path) -> None:
    before, target = content_of(old_data), tmp_path / "new"
    words = {
        "up": ["up", "--listen", "127.0.0.1:0", "--data", f"{old_data}"],
        "doctor": ["doctor", "--data", f"{old_data}"],
        "backup": ["backup", f"{target}", "--data", f"{old_data}"],
        "restore": [
            "restore",
            f"{old_data / 'remuda.db'}",
            "--keys",
            f"{old_data / 'keys.json'}",
            "--data",
            f"{target}",
        ],
        "sim stop": ["sim", "stop", "web", "--data", f"{old_data}"],
    }
    ended = remuda(*words[command])
    file = old_data / "clouds (sim-north.db)" if command == "sim stop" else f"{old_data} (remuda.db)"
    assert ended.returncode == 1
    assert f"The data in {file} {REJECTED}\n" in ended.stdout + ended.stderr
    assert content_of(old_data) == before
    assert not target.exists()


def test_the_simulated_cloud_of_commit_205e8be_is_rejected_beside_a_new_store(old_data: Path, fresh: Path) -> None:
    data = old_data.with_name("mixed")
    shutil.copytree(fresh, data)
    shutil.rmtree(data / "clouds")
    shutil.copytree(old_data / "clouds", data / "clouds")
    before = content_of(data / "clouds")
    ended = remuda("up", "--listen", "127.0.0.1:0", "--data", f"{data}")
    assert ended.returncode == 1
    assert f"The data in {data / 'clouds'} (sim-north.db) {REJECTED}" in ended.stdout + ended.stderr
    assert content_of(data / "clouds") == before


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(2, id="our issuer as the empty name"),
        pytest.param(3, id="simulated servers without their number of rebuilds"),
    ],
)
def test_data_of_a_format_that_no_release_wrote_is_rejected(fresh: Path, tmp_path: Path, found: int) -> None:
    data = tmp_path / "data"
    shutil.copytree(fresh, data)
    with contextlib.closing(apsw.Connection(f"{data / 'remuda.db'}")) as connection:
        connection.pragma("user_version", found)
    before = content_of(data)
    ended = remuda("up", "--listen", "127.0.0.1:0", "--data", f"{data}")
    assert ended.returncode == 1
    sentence = f"The data in {data} (remuda.db) {REJECTED}".replace("format 1", f"format {found}")
    assert sentence in ended.stdout + ended.stderr
    assert content_of(data) == before


def test_data_of_a_later_format_is_rejected_and_left_as_it_is(fresh: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(fresh, data)
    with contextlib.closing(apsw.Connection(f"{data / 'remuda.db'}")) as connection:
        connection.pragma("user_version", 5)
    before = content_of(data)
    ended = remuda("up", "--listen", "127.0.0.1:0", "--data", f"{data}")
    sentence = (
        f"The data in {data} (remuda.db) has format 5, and this program reads format 4. A later release wrote it: "
        "run that release or a newer one, or use another data directory."
    )
    assert ended.returncode == 1
    assert sentence in ended.stdout + ended.stderr
    assert content_of(data) == before


def content_of(directory: Path) -> dict[Path, tuple[int, bytes]]:
    """Return the time and the content of every file below a directory."""
    return {each: (each.stat().st_mtime_ns, each.read_bytes()) for each in directory.rglob("*") if each.is_file()}
