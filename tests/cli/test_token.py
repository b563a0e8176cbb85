"""`remuda token issue`, beside a process and without one."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from remuda.cli import main
from remuda.datadir import DataDirectory
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import create_keyring_file
from tests.kit.processes.operator import ADMIN, issue, organizations
from tests.kit.processes.program import remuda, running


def denied(data: Path, *words: str) -> str:
    told = remuda("token", "issue", "--data", str(data), *words)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.count("\n") == 1, told.stderr
    return told.stderr.strip()


def port_of(data: Path) -> str:
    """Return where the process answered that left this directory."""
    url: str = json.loads((data / "credentials.json").read_text())["endpoints"]["identity"]
    return url.removesuffix("/identity").rpartition(":")[2]


def test_beside_a_process_it_asks_that_one(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        token = issue(tmp_path, *ADMIN, "--reason", "locked out", "--lifetime", "5m")
        answer = organizations(one, token)
        assert (answer.status_code, len(answer.json())) == (200, 1)
        assert organizations(one, f"{token[:-4]}AAAA").status_code == 401
        code, log = one.stop()
    assert code == 0
    assert token not in log
    assert token not in str((tmp_path / "remuda.db").read_bytes())


def test_without_a_process_it_opens_the_store_itself_and_the_token_is_good_at_the_next_start(stopped: Path) -> None:
    port = port_of(stopped)
    token = issue(stopped, *ADMIN)
    with running(stopped, environment={"REMUDA_LISTEN": f"127.0.0.1:{port}"}, listen=None) as one:
        assert organizations(one, token).status_code == 200


def test_without_a_process_and_its_last_address_the_next_one_can_be_named(stopped: Path) -> None:
    port = port_of(stopped)
    (stopped / "credentials.json").unlink()
    token = issue(stopped, *ADMIN, "--listen", f"127.0.0.1:{port}")
    with running(stopped, listen=f"127.0.0.1:{port}") as one:
        assert organizations(one, token).status_code == 200


def test_what_cannot_be_asked_is_one_sentence(tmp_path: Path) -> None:
    nobody = ("--subject", "nobody@example.com")
    told = "the subject 'nobody@example.com' is not a user: use the e-mail address or the id of an existing user."
    with running(tmp_path) as one:
        assert denied(tmp_path, *nobody) == told
        one.stop()
    assert denied(tmp_path, *nobody) == told


@pytest.mark.parametrize("lifetime", ["2h", "soon", "0s"])
def test_a_token_is_for_an_hour_at_most(lifetime: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["token", "issue", *ADMIN, "--data", str(tmp_path), "--lifetime", lifetime]) == 1
    told = "--lifetime is not a duration of at most an hour: give one such as 15m or 1h.\n"
    assert capsys.readouterr() == ("", told)


def test_without_a_store_or_its_keys_it_is_one_sentence(tmp_path: Path) -> None:
    data = tmp_path / "data"
    told = f"--data {data} has no store: name the data directory of remuda up."
    assert denied(data, *ADMIN) == told
    with running(data):
        (data / "keys.json").rename(tmp_path / "keys.json")
        assert denied(data, *ADMIN).startswith(f"There is no key file {data}/keys.json")
        create_keyring_file(data / "keys.json", SystemRandomness())
        assert denied(data, *ADMIN) == (
            "The request was sealed with other keys: run the command with the data directory of this system."
        )
        (data / "keys.json").write_text("{}")
        assert denied(data, *ADMIN) == f"{data}/keys.json is not a key file: restore it from its backup."


def test_a_process_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        one.process.send_signal(signal.SIGSTOP)
        data = DataDirectory(tmp_path)
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            gone = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with data.announced(gone, os.getpid()):
            said = denied(tmp_path, *ADMIN)
            assert said.startswith(
                f"The process that has {data.store} open does not respond: The server {gone} cannot be "
            )
            assert said.endswith("): try again, and check its address if it persists.")
        assert denied(tmp_path, *ADMIN) == (
            f"Another process has {data.store} open and has not published its address: try again in a moment."
        )


def test_a_subject_is_needed(tmp_path: Path) -> None:
    told = remuda("token", "issue", "--data", str(tmp_path))
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "--subject requires a value. See remuda token issue --help.\n"


def test_a_token_that_cannot_be_shown_is_one_sentence(stopped: Path) -> None:
    with Path("/dev/full").open("w") as full:
        told = remuda("token", "issue", "--data", str(stopped), *ADMIN, stdout=full)
    assert told.returncode == 1
    assert told.stderr == ("The output cannot be written (No space left on device): redirect stdout to where it can.\n")
