"""`remuda context`: several logins, which of them is used, and where it works; and the file they are in."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from remuda.cli.client.contexts import ContextsFile, LoginContext, LoginTokens, default_path
from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.secrets import Secret
from tests.kit.processes.program import UNPRIVILEGED, remuda
from tests.kit.processes.terminal import Cloud, Terminal

CONTEXT = LoginContext(
    endpoints={"identity": "http://here/identity"}, tokens=LoginTokens(access=Secret("s3cret")), subject="me"
)


def test_there_can_be_several_logins_and_one_is_used(user: Terminal, remuda_up: Cloud) -> None:
    user("login", "--credentials", str(remuda_up.credentials), "--name", "other")
    headings, *rows = (line.split() for line in user("context", "list").splitlines())
    assert headings == ["NAME", "URL", "SUBJECT", "ORGANIZATION", "PROJECT"]
    assert [row[:3] for row in rows] == [
        ["default", remuda_up.running.url, "the"],
        ["*", "other", remuda_up.running.url],
    ]
    assert user("context", "use", "default") == "The current context is default.\n"
    assert user.contexts.current == "default"
    assert user("region", "list", "--context", "other", "-o", "name") == "sim-north\nsim-south\n"
    unknown = "The context nope does not exist: remuda context list shows them."
    assert user.refused("context", "use", "nope") == unknown
    assert user.refused("region", "list", "--context", "nope") == unknown


def test_an_empty_name_is_not_the_login_in_use(user: Terminal) -> None:
    unknown = "The context '' does not exist: remuda context list shows them."
    assert user.refused("region", "list", "--context", "") == unknown
    assert user.refused("context", "use", "") == unknown
    assert user.refused("context", "set", "--project", "default", "--context", "") == unknown
    assert user.refused("logout", "") == unknown
    assert user.contexts.current == "default"


def test_who_logs_out_is_told_of_the_other_logins(user: Terminal, remuda_up: Cloud) -> None:
    for name in ("second", "third"):
        user("login", "--credentials", str(remuda_up.credentials), "--name", name)
    assert user("logout", "second") == "You are logged out of second.\n", "another one is in use"
    user("login", "--credentials", str(remuda_up.credentials), "--name", "second")
    choice = "run remuda context use NAME with one of default, third."
    assert user("logout") == f"You are logged out of second. To use another login, {choice}\n"
    assert user.refused("region", "list") == f"No context is in use: {choice}"
    user("context", "use", "third")
    choice = "run remuda context use default."
    assert user("logout") == f"You are logged out of third. To use another login, {choice}\n"
    assert user.refused("region", "list") == f"No context is in use: {choice}"


def test_nobody_is_logged_in_to_begin_with(terminal: Terminal) -> None:
    assert terminal("context", "list") == "No login context found: run remuda login.\n"
    assert terminal.refused("logout").startswith("You are not logged in: ")


def test_one_can_work_in_another_project(user: Terminal, remuda_up: Cloud) -> None:
    found = remuda_up.running.credentials
    projects = f"{remuda_up.running.url}/identity/api/v1/organizations/{found['organizationId']}/projects"
    headers = {"Authorization": f"Bearer {found['token']}"}
    (default,) = (
        each for each in httpx2.get(projects, headers=headers).json() if each["metadata"]["name"] == "default"
    )
    body = {"metadata": {"name": "rockets"}, "spec": {"groupIDs": default["spec"]["groupIDs"]}}
    assert httpx2.post(projects, headers=headers, json=body).is_success
    assert user("network", "list", "--project", "rockets") == "No network found.\n"
    assert user("context", "set", "--project", "rockets") == (
        "The context default uses the organization default, project rockets.\n"
    )
    assert user.contexts.contexts["default"].project is not None
    assert user("context", "set", "--organization", "default") == (
        "The context default uses the organization default, project -.\n"
    )
    said = user.refused("network", "create", "pad", "--region", "sim-north")
    assert said == "No project is chosen: give --project, or choose one with remuda context set."
    assert "rockets" in user.refused("context", "set", "--project", "nope")


def test_who_works_in_no_organization_is_told_how_to_choose_one(user: Terminal) -> None:
    name, found = user.contexts.find(None)
    nowhere = LoginContext(endpoints=found.endpoints, tokens=found.tokens)
    ContextsFile(user.file).update(lambda all_: all_.with_context(name, nowhere))
    remedy = "give the organization of the project with --organization."
    assert user.refused("context", "set", "--project", "x") == f"No organization is chosen: {remedy}"
    assert user.refused("network", "list", "--project", "x") == f"No organization is chosen: {remedy}"
    assert user.refused("quota", "show").startswith("No organization is chosen: give --organization, ")
    assert user("quota", "show", "--organization", "default", "-o", "name").startswith("clusters\n")


def test_a_login_is_kept_where_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = default_path({"XDG_CONFIG_HOME": str(tmp_path / "config")})
    file = ContextsFile(path)
    assert file.read().contexts == {}
    file.update(lambda all_: all_.with_context("a", CONTEXT))
    assert path == tmp_path / "config" / "remuda" / "contexts.json"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "s3cret" in path.read_text()
    assert "s3cret" not in repr(file.read())
    assert file.read().find("a") == ("a", CONTEXT)


def test_commands_that_run_at_once_do_not_undo_each_other(tmp_path: Path) -> None:
    def add(number: int) -> None:
        ContextsFile(tmp_path / "contexts.json").update(lambda all_: all_.with_context(f"c{number}", CONTEXT))

    with ThreadPoolExecutor(8) as many:
        list(many.map(add, range(24)))
    assert len(ContextsFile(tmp_path / "contexts.json").read().contexts) == 24


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    file = ContextsFile(tmp_path / "contexts.json")
    file.update(lambda all_: all_.with_context("a", CONTEXT))

    def fail(_all: object) -> None:
        raise Unusable("no")

    with pytest.raises(Unusable, match="no"):
        file.update(fail)  # type: ignore[arg-type]  # it never returns
    assert file.read().contexts == {"a": CONTEXT}


def test_what_is_no_list_of_logins_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "contexts.json"
    path.write_text('{"contexts": 1}')
    with pytest.raises(Invalid, match="is not a list of logins: move the file away and log in again"):
        ContextsFile(path).read()


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are set aside in the way of Linux")
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "remuda" / "contexts.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    told = remuda("context", "list", code=UNPRIVILEGED)
    remedy = "check its permissions, or set XDG_CONFIG_HOME."
    assert (told.returncode, told.stderr) == (1, f"{path} cannot be used (Permission denied): {remedy}\n")


def test_without_a_place_of_ones_own_it_is_in_the_home() -> None:
    assert default_path({}) == Path.home() / ".config" / "remuda" / "contexts.json"
