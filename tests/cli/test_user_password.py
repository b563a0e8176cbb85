"""`remuda user password`, beside a process and without one."""

import re
from pathlib import Path

import httpx2

from tests.kit.processes.operator import ADMIN, issue, organizations
from tests.kit.processes.program import Running, remuda, running
from tests.kit.processes.shell import CHOSEN, Forms, visit

ADMINISTRATOR = "admin@remuda.local"


def link_for(data: Path, *words: str, email: str = ADMINISTRATOR) -> str:
    told = remuda("user", "password", email, "--data", str(data), *words)
    assert told.returncode == 0, told.stderr
    assert told.stderr.startswith(f"The link sets the password of {ADMINISTRATOR} once, until ")
    assert told.stdout.count("\n") == 1
    return told.stdout.strip()


def set_password(link: str) -> httpx2.Response:
    with httpx2.Client() as browser:
        page = browser.get(link)
        if page.status_code != 200:
            return page
        form = Forms(page.text)
        chosen = {"new_password": CHOSEN, "repeated_password": CHOSEN}
        return browser.post(form.action, data={**form.fields, **chosen})


def logs_in(one: Running) -> bool:
    return "Your account" in visit(f"{one.url}/identity/oauth2/v2/account", CHOSEN)


def test_m27_beside_a_process_the_link_sets_a_password_once_and_is_audited(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        replaced, link = link_for(tmp_path), link_for(tmp_path, "--reason", "lost", email=ADMINISTRATOR.upper())
        assert link.startswith(f"{one.url}/identity/oauth2/v2/password?link=")
        assert set_password(replaced).status_code == 400
        assert set_password(link).status_code == 200
        assert set_password(link).status_code == 400
        assert logs_in(one)
        token = issue(tmp_path, *ADMIN)
        audit = httpx2.get(f"{one.url}/identity/api/v1/audit", headers={"Authorization": f"Bearer {token}"}).json()
        records = [each for each in audit if each["operation"]["route"] == "/api/v1/operator/passwords"]
        assert [each["scope"]["reason"] for each in records] == ["lost", ""]
        assert all(each["actor"]["subject"].startswith("operator ") for each in records)
        assert {each["actor"]["actor"] for each in records} == {ADMINISTRATOR}
        assert organizations(one, token).status_code == 200
        code, log = one.stop()
    assert code == 0
    assert link.rpartition("=")[2] not in log
    assert link.rpartition("=")[2] not in str((tmp_path / "remuda.db").read_bytes())


def test_without_a_process_the_link_is_valid_at_the_next_start(stopped: Path) -> None:
    link = link_for(stopped)
    (port,) = re.findall(r":(\d+)/", link)
    with running(stopped, listen=f"127.0.0.1:{port}") as one:
        assert set_password(link).status_code == 200
        assert logs_in(one)


def test_a_user_who_does_not_exist_and_a_directory_without_a_store_are_one_sentence(
    stopped: Path, tmp_path: Path
) -> None:
    told = remuda("user", "password", "nobody@example.com", "--data", str(stopped))
    problem = "the subject 'nobody@example.com' is not a user: use the e-mail address or the id of an existing user."
    assert (told.returncode, told.stdout, told.stderr.strip()) == (1, "", problem)
    told = remuda("user", "password", ADMINISTRATOR, "--data", str(tmp_path))
    problem = f"--data {tmp_path} has no store: name the data directory of remuda up."
    assert (told.returncode, told.stdout, told.stderr.strip()) == (1, "", problem)
