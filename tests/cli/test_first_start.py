"""What a real first start leaves behind: somebody who can log in, and a token for scripts."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.processes.program import Running, remuda, running, up
from tests.kit.processes.shell import CHOSEN, visit

PASSWORD = re.compile(r"^ {4}(\S{23})$", re.MULTILINE)


def asked(one: Running, path: str, **options: Any) -> httpx2.Response:
    credentials = one.credentials
    headers = {"Authorization": f"Bearer {credentials['token']}"}
    return httpx2.request(
        options.pop("method", "GET"), credentials["endpoints"]["identity"] + path, headers=headers, **options
    )


def test_the_first_start_says_how_to_log_in_and_later_ones_do_not(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        page = f"{one.url}/identity/oauth2/v2/account"
        told = "this password, which is not shown again and only lets you choose your own:"
        assert f"Log in at {page} as admin@remuda.local with {told}" in one.said
        assert str(tmp_path / "credentials.json") in one.said
        (password,) = PASSWORD.findall(one.said)
        account = visit(page, password)
        assert "Your account" in account
        with pytest.raises(AssertionError):
            visit(page, password)
        assert "Your account" in visit(page, CHOSEN)
        assert "You are a platform administrator" in account
        code, log = one.stop()
        assert code == 0
        assert password not in log
        assert one.credentials["token"] not in log
    with running(tmp_path) as one:
        assert one.said == ""
        one.stop()


def test_who_has_no_credentials_is_told_where_it_is_written_how_to_get_some(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        refused = httpx2.get(f"{one.url}/identity/api/v1/organizations")
        assert refused.status_code == 401
        (where,) = re.findall(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
        assert httpx2.get(where).json()["resource"] == f"{one.url}/identity"
        one.stop()


def test_a_script_reads_what_it_needs_from_one_file(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        credentials = one.credentials
        assert credentials["endpoints"] == {each: f"{one.url}/{each}" for each in ("identity", "region", "compute")}
        home = f"/api/v1/organizations/{credentials['organizationId']}"
        (organization,) = asked(one, "/api/v1/organizations").json()
        assert (organization["metadata"]["id"], organization["metadata"]["name"]) == (
            credentials["organizationId"],
            "default",
        )
        (project,) = asked(one, f"{home}/projects").json()
        assert (project["metadata"]["id"], project["metadata"]["name"]) == (credentials["projectId"], "default")
        made = asked(
            one,
            f"{home}/projects",
            method="POST",
            json={"metadata": {"name": "another"}, "spec": {"groupIDs": project["spec"]["groupIDs"]}},
        )
        assert made.status_code == 202
        assert {each["kind"] for each in asked(one, f"{home}/quotas").json()["quotas"]} >= {"servers", "gpus"}


def test_a_start_says_that_the_file_is_gone_and_how_scripts_get_a_token_again(stopped: Path) -> None:
    file = stopped / "credentials.json"
    written = json.loads(file.read_text())
    home = f"/api/v1/organizations/{written['organizationId']}"
    for content in (None, "{}"):
        file.unlink() if content is None else file.write_text(content)
        with running(stopped) as one:
            assert one.said.startswith(f"{file} is missing or damaged and is not written again: get a token with ")
            assert one.said.count("\n") == 2
            assert file.exists() == (content is not None)
            token = remuda("token", "issue", "--subject", "admin@remuda.local", "--data", str(stopped)).stdout.strip()
            accounts = f"{one.url}/identity{home}/serviceaccounts"
            headers = {"Authorization": f"Bearer {token}"}
            (account,) = httpx2.get(accounts, headers=headers).json()
            rotated = httpx2.post(f"{accounts}/{account['metadata']['id']}/rotate", headers=headers).json()
            one.stop()
    file.write_text(json.dumps({**written, "token": rotated["status"]["accessToken"]}))
    with running(stopped) as one:
        assert one.said == ""
        assert asked(one, "/api/v1/organizations").status_code == 200
        removed = asked(one, f"{home}/serviceaccounts/{account['metadata']['id']}", method="DELETE")
        assert removed.is_success
        one.stop()
    file.unlink()
    with running(stopped) as one:
        assert one.said == "", "who removed the account, too, knows what they do"


def test_the_names_are_those_of_the_configuration(tmp_path: Path) -> None:
    names = {
        "REMUDA_IDENTITY__BOOTSTRAP__ADMINISTRATOR": "root@example.com",
        "REMUDA_IDENTITY__BOOTSTRAP__PASSWORD": "correct horse battery",
        "REMUDA_IDENTITY__BOOTSTRAP__ORGANIZATION": "acme",
        "REMUDA_IDENTITY__BOOTSTRAP__PROJECT": "rockets",
    }
    with running(tmp_path, environment=names) as one:
        assert "as root@example.com with the password of your configuration, which only lets you choose" in one.said
        assert "correct horse" not in one.said
        (organization,) = asked(one, "/api/v1/organizations").json()
        assert organization["metadata"]["name"] == "acme"


def test_the_token_outlives_kill_9_and_another_port(tmp_path: Path) -> None:
    for how in (signal.SIGKILL, signal.SIGTERM):
        with running(tmp_path) as one:
            assert asked(one, "/api/v1/organizations").status_code == 200
            one.stop(how)


@pytest.mark.parametrize("sign", ["keys.json", "remuda.db", "clouds/sim-south.db", "credentials.json"])
def test_a_first_start_that_is_killed_is_made_up_for_by_the_next(sign: str, tmp_path: Path) -> None:
    with up(tmp_path) as process:
        while not (tmp_path / sign).exists():
            assert process.poll() is None
        process.kill()
        said, _ = process.communicate(timeout=120)
    with running(tmp_path) as one:
        shown = PASSWORD.findall(said + one.said)
        assert shown, "one of them told the password"
        assert asked(one, "/api/v1/organizations").status_code == 200
        assert len(asked(one, "/api/v1/organizations").json()) == 1
        one.stop()


def test_a_password_that_cannot_be_shown_is_one_sentence_and_shown_next_time(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full, up(tmp_path, stdout=full) as process:
        _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    last = error.strip().splitlines()[-1]
    assert last == "The output cannot be written (No space left on device): redirect stdout to where it can."
    assert "Traceback" not in error
    with running(tmp_path) as one:
        assert PASSWORD.findall(one.said)
