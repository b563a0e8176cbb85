import json
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import create_keyring_file
from remuda.operations.kinds import CLOSED_PHASES, OPEN_PHASES
from remuda.reconcile.reporter import RECONCILE_RESULTS
from tests.kit.asgi.process_client import ask, validated
from tests.kit.processes.program import UNPRIVILEGED, refused, remuda, running, running_cold, up


def test_b04_the_first_start_makes_everything_private_and_answers(tmp_path: Path) -> None:
    data = tmp_path / "deep" / "data"
    with running_cold(data) as one:
        assert ask(f"{one.url}/healthz").json() == {"status": "ok"}
        assert ask(f"{one.url}/readyz").status_code == 200
        assert ask(f"{one.url}/api/version").json()["name"] == "remuda"
        assert "<h1>Remuda is ready</h1>" in ask(one.url).text
        assert "remuda_loop_lag_seconds_count" in one.metrics().text
        assert one.stop()[0] == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [data, *data.rglob("*")]}
    files = ("credentials.json", "keys.json", "remuda.db", "remuda.db.lock", "sim-north.db", "sim-south.db")
    assert modes == {"data": 0o700, "clouds": 0o700, **dict.fromkeys(files, 0o600)}


def test_what_alerts_watch_is_counted_from_the_start(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        lines = one.metrics().text.splitlines()
    series = {line.rpartition(" ")[0] for line in lines}
    wanted = {
        f'remuda_reconcile_runs_total{{controller="{controller}",result="{result}"}}'
        for controller in ("instances", "networks", "projects")
        for result in RECONCILE_RESULTS
    }
    for saga in ("instance.create", "network.create"):
        wanted |= {f'remuda_operations_closed_total{{phase="{phase}",saga="{saga}"}}' for phase in CLOSED_PHASES}
        wanted |= {f'remuda_operations_open{{phase="{phase}",saga="{saga}"}}' for phase in OPEN_PHASES}
    wanted |= {
        f'remuda_http_{name}_total{{service="{service}"}}'
        for name in ("errors", "rate_limited")
        for service in ("compute", "region", "identity", "none")
    }
    assert wanted - series == set()
    outcomes = [each for each in series if each.startswith('remuda_provider_failures_total{outcome="unhealthy"')]
    assert len(outcomes) == 2, "one of each simulated cloud"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly_with_the_whole_log_written(tmp_path: Path, how: signal.Signals) -> None:
    with running(tmp_path) as one:
        ask(f"{one.url}/api/version", params={"token": "secret"})
        code, log = one.stop(how)
    assert code == 0
    (line,) = [line for line in map(json.loads, log.splitlines()) if line["event"] == "request"]
    assert (line["event"], line["path"], line["status"]) == ("request", "/api/version", 200)
    assert "secret" not in log
    assert (tmp_path / "remuda.db.lock").read_text() == "", "the store was closed"


@pytest.mark.parametrize("sign", ["keys.json", "credentials.json"])
def test_ctrl_c_while_it_starts_stops_it_in_order(sign: str, tmp_path: Path) -> None:
    with up(tmp_path) as process:
        while not (tmp_path / sign).exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=120)
    assert process.returncode == 0
    assert [line for line in log.splitlines() if not line.startswith("{")] == []
    assert (tmp_path / "remuda.db.lock").read_text() == "", "the store was closed"


def test_it_starts_again_after_kill_9_with_the_same_keys(tmp_path: Path) -> None:
    keys = set()
    for _ in range(3):
        with running(tmp_path) as one:
            assert ask(f"{one.url}/readyz").status_code == 200
            keys.add((tmp_path / "keys.json").read_text())
            assert one.stop(signal.SIGKILL)[0] == -signal.SIGKILL
        assert (tmp_path / "remuda.db.lock").read_text() == "open\n"
    with running(tmp_path) as one:
        assert one.stop()[0] == 0
    assert len(keys) == 1


def test_many_who_ask_while_it_stops_get_an_answer_or_no_connection(tmp_path: Path) -> None:
    answers: list[int] = []
    with running(tmp_path) as one:

        def ask() -> None:
            with httpx2.Client() as client:
                try:
                    while True:
                        answers.append(validated(client.get(f"{one.url}/api/version")).status_code)
                except httpx2.TransportError:
                    return

        requesters = [threading.Thread(target=ask) for _ in range(8)]
        for requester in requesters:
            requester.start()
        while len(answers) < 50:
            assert any(requester.is_alive() for requester in requesters)
        code, log = one.stop()
        for requester in requesters:
            requester.join()
    assert code == 0
    assert set(answers) <= {200, 503}
    assert len(log.splitlines()) >= answers.count(200)


def test_a_store_that_is_in_use_is_one_sentence(tmp_path: Path) -> None:
    with running(tmp_path):
        assert refused(tmp_path).startswith("Another process has the store")


def test_a_port_that_is_taken_is_one_sentence_and_leaves_the_store_closed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(tmp_path, f"127.0.0.1:{port}")
    assert said == f"The address 127.0.0.1:{port} is taken by another process: stop that one, or choose another port."
    assert (tmp_path / "remuda.db.lock").read_text() == ""


def test_a_bad_address_names_its_option_and_makes_nothing(tmp_path: Path) -> None:
    assert refused(tmp_path / "data", "8080") == "--listen is not HOST:PORT: give both, as in 127.0.0.1:8080."
    assert not (tmp_path / "data").exists()


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = refused(tmp_path / "file" / "data")
    assert said.startswith("--data ")
    assert said.endswith("cannot be created (Not a directory): choose another directory.")


def test_a_store_without_its_keys_is_refused_and_gets_no_new_ones(stopped: Path) -> None:
    (stopped / "keys.json").unlink()
    said = refused(stopped)
    assert "holds a store without its keys" in said
    assert not (stopped / "keys.json").exists()


def test_a_directory_that_cannot_be_written_is_one_sentence() -> None:
    said = refused(Path("/sys"))  # where not even root can make a file
    assert said.startswith("/sys/keys.json cannot be used (")
    assert said.endswith("): check the path and its permissions.")


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are set aside in the way of Linux")
def test_what_belongs_to_another_user_is_one_sentence(stopped: Path) -> None:
    commands = (["up", "--listen", "127.0.0.1:0"], ["token", "issue", "--subject", "admin@remuda.local"])

    def told() -> set[tuple[int, str, str]]:
        asked = [remuda(*words, "--data", str(stopped), code=UNPRIVILEGED) for words in commands]
        return {(each.returncode, each.stdout, each.stderr) for each in asked}

    (stopped / "remuda.db").chmod(0o400)
    remedy = "run this as its owner, or give it mode 600."
    assert told() == {(1, "", f"The store {stopped}/remuda.db cannot be read and written by this user: {remedy}\n")}
    stopped.chmod(0)
    remedy = "run this as the directory's owner, or name another one."
    assert told() == {(1, "", f"--data {stopped} cannot be read (Permission denied): {remedy}\n")}
    stopped.chmod(0o700)


def test_a_store_that_is_damaged_or_somebody_elses_is_one_sentence(stopped: Path) -> None:
    store = stopped / "remuda.db"
    whole = store.read_bytes()
    store.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    assert refused(stopped).startswith(f"The store {store} is damaged (")
    store.write_bytes(b"a diary, or something" * 100)
    assert refused(stopped) == (
        f"The file {store} was not written by Remuda and is left unchanged: use another directory (--data)."
    )
    assert store.read_bytes() == b"a diary, or something" * 100


def test_a_store_that_was_emptied_is_one_sentence_and_no_first_start(stopped: Path) -> None:
    store, credentials = stopped / "remuda.db", stopped / "credentials.json"
    before = credentials.read_bytes()
    store.write_bytes(b"")
    told = (
        f"The store {store} is empty although it was in use: "
        "restore it from a backup, or remove it to start with an empty one."
    )
    assert refused(stopped) == told
    asked = remuda("token", "issue", "--subject", "admin@remuda.local", "--data", str(stopped))
    assert (asked.returncode, asked.stdout, asked.stderr) == (1, "", f"{told}\n")
    assert (store.read_bytes(), credentials.read_bytes()) == (b"", before)
    store.unlink()
    with running(stopped) as one:
        assert one.said.startswith("This is the first start.")
        assert one.stop()[0] == 0


def test_keys_that_are_damaged_open_to_others_or_another_stores_are_one_sentence(stopped: Path) -> None:
    keys = stopped / "keys.json"
    whole = keys.read_text()
    keys.chmod(0o644)
    assert refused(stopped) == f"{keys} can be read or written by other users: run chmod 600 {keys}."
    keys.chmod(0o600)
    keys.write_text(whole[:-10])
    assert refused(stopped) == f"{keys} is not a key file: restore it from its backup."
    keys.unlink()
    create_keyring_file(keys, SystemRandomness())
    assert "cannot be decrypted: put the key it was sealed with back into the key file" in refused(stopped)
    keys.write_text(whole)
    with running(stopped) as one:
        assert one.stop()[0] == 0


def test_help_imports_no_server() -> None:
    code = (
        "import sys; from remuda.cli import main; main(['--help'])\n"
        "print({'httptools', 'apsw', 'prometheus_client'} & set(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "up" in result.stdout
    assert result.stderr == "set()\n"
