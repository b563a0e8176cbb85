"""What a process does for the services in it: from when they are entered to when they are left."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from remuda.datadir import DataDirectory
from tests.kit.asgi.process_client import ask
from tests.kit.processes.sample_service import RELEASE

ROOT = Path(__file__).parents[2]


@contextmanager
def hosting(data: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "tests.kit.processes.sample_service", str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "entered\n"
            yield process, f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def accepts(url: str) -> bool:
    try:
        httpx2.get(f"{url}/healthz", timeout=120)
    except httpx2.TransportError:
        return False
    return True


def metrics(data: Path) -> str:
    return httpx2.get(DataDirectory(data).metrics_at()).text


def test_a_service_has_a_say_in_readiness_and_in_the_metrics(tmp_path: Path) -> None:
    with hosting(tmp_path) as (_, url):
        unready = ask(f"{url}/readyz")
        assert (unready.status_code, unready.json()["problems"][0]["pointer"]) == (503, "slow")
        assert "\nwaits_total 0.0\n" in metrics(tmp_path)
        assert httpx2.get(f"{url}/slow/").text == "done"
        assert ask(f"{url}/readyz").status_code == 200


def test_services_are_left_after_the_last_answer_and_before_the_store_is_closed(tmp_path: Path) -> None:
    with hosting(tmp_path) as (process, url):
        answers: list[str] = []
        asking = threading.Thread(target=lambda: answers.append(httpx2.get(f"{url}/slow/wait", timeout=120).text))
        asking.start()
        while "\nwaits_total 1.0\n" not in metrics(tmp_path):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        said, log = process.communicate(timeout=120)
        asking.join()
    assert (process.returncode, answers, said) == (0, ["done"], "left with late\n"), log
    assert (tmp_path / "remuda.db.lock").read_text() == "", "the store was closed"


def test_the_metrics_can_be_read_until_the_last_request_is_done(tmp_path: Path) -> None:
    with hosting(tmp_path) as (process, url):
        answers: list[str] = []
        asking = threading.Thread(target=lambda: answers.append(httpx2.get(f"{url}/slow/held", timeout=120).text))
        asking.start()
        while "\nwaits_total 1.0\n" not in metrics(tmp_path):
            time.sleep(0.01)
        address = DataDirectory(tmp_path).metrics_at()
        process.send_signal(signal.SIGTERM)
        while accepts(url):
            time.sleep(0.01)
        during = httpx2.get(address).text
        (tmp_path / RELEASE).touch()
        process.communicate(timeout=120)
        asking.join()
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(address)
    assert "\nremuda_http_connections 1.0\n" in during
    assert (process.returncode, answers) == (0, ["done"])
