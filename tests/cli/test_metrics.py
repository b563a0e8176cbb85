"""The metrics of `remuda up`: where they are, who may read them, and how much they are."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from remuda.http.server.exposition import DEFAULT_ADDRESS
from remuda.version import describe
from tests.kit.asgi.process_client import ask
from tests.kit.processes.program import Running, refused, remuda, running, running_cold

KIB = 1024
SETTING = "REMUDA_METRICS__LISTEN"
TOKEN_FILE = "REMUDA_METRICS__TOKEN_FILE"
INSECURE = "REMUDA_SERVER__INSECURE"
TOKEN = "f3a1c9d2b7e64580a9d4"


def test_m24_the_metrics_of_a_fresh_system_are_small_valid_and_not_public(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        assert ask(f"{one.url}/metrics").status_code == 404
        plain = one.metrics(headers={"accept-encoding": "identity"})
        openmetrics = one.metrics(headers={"accept-encoding": "identity", "accept": "application/openmetrics-text"})
        packed = one.metrics(headers={"accept-encoding": "gzip"})
    for answer in (plain, openmetrics):
        assert 20 * KIB < len(answer.content) < 200_000
        assert "_created" not in answer.text
        assert answer.text.count("remuda_http_requests_total{") <= 2 * 5, "a route that nobody asked has no series"
    assert int(packed.headers["content-length"]) < 20 * KIB
    families = openmetrics_families(openmetrics.text)  # type: ignore[no-untyped-call]
    names = [{each.name for each in text_families(plain.text)}, {each.name for each in families}]
    assert names[0] == names[1]
    build = f'revision="{describe().revision}",version="{describe().version}"'
    assert build in plain.text
    found = {each.name: each.samples for each in text_families(plain.text)}
    assert {sample.labels["file"]: sample.value > 0 for sample in found["remuda_store_bytes"]}["database"]
    assert found["remuda_store_free_bytes"][0].value > 0
    assert {sample.labels["controller"] for sample in found["remuda_reconcile_queue_depth"]} >= {"instances", "servers"}
    for name in ("remuda_store_writes_pending", "remuda_http_connections", "remuda_log_lines_dropped"):
        assert len(found[name]) == 1


@contextmanager
def second_process(directory: Path) -> Iterator[Running]:
    """Start it while another process has the usual address: this one, or another of the machine, which may end."""
    for attempt in count():
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                other.bind((DEFAULT_ADDRESS.host, DEFAULT_ADDRESS.port))
                is_ours = True
            except OSError:
                is_ours = False
            if is_ours:
                other.listen()
            with running_cold(directory / str(attempt)) as one:
                if is_ours or f"//{DEFAULT_ADDRESS}/" not in one.metrics_url:
                    yield one
                    return


def test_two_processes_of_one_machine_both_start_and_the_second_says_where_its_metrics_are(tmp_path: Path) -> None:
    with second_process(tmp_path) as one:
        assert f"//{DEFAULT_ADDRESS}/" not in one.metrics_url
        assert "remuda_build_info" in one.metrics().text
        address = one.metrics_url
        told = json.loads(remuda("doctor", "-o", "json", "--data", str(one.data)).stdout)
        (finding,) = [each for each in told["findings"] if each["check"] == "metrics"]
        _, log = one.stop()
    assert finding["message"] == f"The metrics are at {address}."
    (line,) = [line for line in map(json.loads, log.splitlines()) if line["event"].startswith("metrics are served")]
    assert (line["level"], line["taken"]) == ("warning", str(DEFAULT_ADDRESS))
    assert address == f"http://{line['address']}/metrics"


def test_a_configured_address_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = refused(tmp_path, environment={SETTING: address})
    assert said == f"The address {address} is taken by another process: stop that one, or choose another port."
    assert (tmp_path / "remuda.db.lock").read_text() == ""


def test_an_empty_address_serves_no_metrics(tmp_path: Path) -> None:
    with running(tmp_path, environment={SETTING: ""}) as one:
        assert one.metrics_url == ""
        told = remuda("doctor", "--data", str(tmp_path))
    assert "The metrics are not served." in told.stdout


def test_m24_with_a_token_only_its_readers_get_the_metrics(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    with running(tmp_path / "data", environment={TOKEN_FILE: str(file)}) as one:
        assert one.metrics().status_code == 401
        assert one.metrics(headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        _, log = one.stop()
    assert TOKEN not in log
    shown = remuda("config", "show", "--data", str(tmp_path / "data"), environment={TOKEN_FILE: str(file)})
    assert str(file) in shown.stdout
    assert TOKEN not in shown.stdout


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:9464", "metrics.example.com:9464"])
def test_m24_metrics_that_other_machines_can_reach_need_a_token(address: str, tmp_path: Path) -> None:
    said = refused(tmp_path / "data", environment={SETTING: address, INSECURE: "true"})
    assert said == (
        "metrics.listen can be reached by other machines without a token: "
        "choose one such as 127.0.0.1:9464, or set metrics.token_file."
    )
    assert not (tmp_path / "data").exists()


def test_metrics_with_a_token_may_be_reached_by_other_machines(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with running(tmp_path / "data", environment={SETTING: "0.0.0.0:0", TOKEN_FILE: str(file), INSECURE: "true"}) as one:
        assert one.metrics(headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read from"),
        (b"short", "has no bearer token in"),
        (b"with a blank inside it", "has no bearer token in"),
        (b"\xff" * 32, "cannot be read from"),
    ],
)
def test_a_token_file_without_a_token_is_one_sentence(content: bytes | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    said = refused(tmp_path / "data", environment={TOKEN_FILE: str(file)})
    assert said.startswith(f"metrics.token_file {problem} {file}")
