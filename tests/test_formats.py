"""The formats that others rely on, compared with what they were.

Whatever is stored, sent or typed is in `tests/golden/formats`. A change of the program that changes a file there
changes a format, which is a mistake unless the commit is about that.
"""

import difflib
import os
import re
import tarfile
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.formats import program, source
from tests.formats.started import metrics_of, started
from tests.formats.text import shown
from tests.kit.processes.program import Running, remuda

GOLDEN = Path(__file__).parent / "golden" / "formats"
DATA = GOLDEN / "data-205e8be.tar.xz"
"""The data directory of commit 205e8be, stopped with SIGTERM.

It has a network with a security group, an SSH certificate authority, the instance `web`, which is provisioned, the
instance `late`, which was being made, and the operation of a network that the quota refused."""
IS_WRITTEN = os.environ.pop("REMUDA_WRITE_GOLDEN", "") == "1"
"""Taken out of the environment, because the program refuses variables of its own that it does not know."""
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
    end = time.monotonic() + 30
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


def test_data_of_commit_205e8be_opens_and_settles(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with tarfile.open(DATA) as archive:
        archive.extractall(data, filter="data")
    with started(data) as running:
        until_ready(running.url)
        user = Administrator(running)
        until(lambda: user.states("compute/api/v2/instances") == {"late": "provisioned", "web": "provisioned"})
        assert user.states("region/api/v2/networks") == {"pad": "provisioned"}
        assert user.states("region/api/v2/securitygroups") == {"web": "provisioned"}
        (web,) = [each for each in user.read("compute/api/v2/instances") if each["metadata"]["name"] == "web"]
        assert (web["status"]["privateIP"], web["status"]["publicIP"]) == ("10.0.0.228", "198.51.100.1")
        until(lambda: open_operations(running.url) == 0)
        examined = remuda("doctor", "--data", str(data))
        assert examined.returncode == 0, examined.stdout
        code, log = running.stop()
        assert code == 0, log
    assert '"level":"error"' not in log.replace(" ", "")


class Administrator:
    """An administrator, by a token that is issued now: those in the data expire."""

    def __init__(self, running: Running) -> None:
        token = remuda("token", "issue", "--subject", "admin@remuda.local", "--data", str(running.data)).stdout.strip()
        self._url, self._headers = running.url, {"Authorization": f"Bearer {token}"}

    def read(self, path: str) -> Any:
        found = httpx2.get(f"{self._url}/{path}", headers=self._headers)
        assert found.status_code == HTTPStatus.OK, found.text
        return found.json()

    def states(self, path: str) -> dict[str, str]:
        """Return the provisioning status of every object of a list, by name."""
        return {each["metadata"]["name"]: each["metadata"]["provisioningStatus"] for each in self.read(path)}


def open_operations(url: str) -> float:
    """Return how many operations have not ended."""
    series = re.findall(r"^remuda_operations_open{.*} (\S+)$", httpx2.get(f"{url}/metrics").text, re.MULTILINE)
    assert series, "it counts them"
    return sum(map(float, series))
