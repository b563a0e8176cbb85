"""`remuda login` and `logout`, against a real process: who is who, what is remembered, and how long that is good."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from remuda.cli.client.contexts import ContextsFile, LoginContext, LoginTokens
from remuda.cli.client.session import ClientSession
from remuda.cli.commands import login as logging_in
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.secrets import Secret
from tests.kit.processes.shell import Forms, let_in
from tests.kit.processes.terminal import Cloud, Terminal

HERE = "in the project default of the organization default."


def log_in_with_a_browser(
    terminal: Terminal, one: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    """Log in as a person does: while the command waits, a browser lets it in."""
    said = []

    async def browse(_seconds: float) -> None:
        said.append(capsys.readouterr().out)
        let_in(said[0].split()[1], one.password)

    monkeypatch.setattr(logging_in, "sleep", browse)
    out = terminal("login", one.running.url, *words)
    return said[0] + out


def regions(name: str, context: LoginContext, terminal: Terminal) -> list[Any]:
    """Return the regions, as a command with this context reads them."""

    async def read() -> list[Any]:
        async with ClientSession(name, context, ContextsFile(terminal.file)) as session:
            return await session.get("region", "/api/v2/regions", list[Any])

    return asyncio.run(read())


def test_a_person_logs_in_with_a_browser_and_all_commands_know(
    terminal: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--organization", "default", "--project", "default")  # other tests have made more of them
    said = log_in_with_a_browser(terminal, remuda_up, monkeypatch, capsys, *where)
    invitation, told = said.splitlines()
    assert invitation.startswith(f"Open {remuda_up.running.url}/identity/")
    assert told == f"You are logged in as admin@remuda.local {HERE}"
    assert terminal("region", "list", "-o", "name") == "sim-north\nsim-south\n"
    assert terminal.file.stat().st_mode & 0o777 == 0o600
    assert "eyJ" not in said, "no token is shown"


def test_a_login_that_has_run_out_is_renewed_and_one_command_does_it_for_all(
    terminal: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log_in_with_a_browser(terminal, remuda_up, monkeypatch, capsys)
    name, before = terminal.contexts.find(None)
    stale = replace(before, tokens=replace(before.tokens, access=Secret("run out")))
    ContextsFile(terminal.file).update(lambda all_: all_.with_context(name, stale))
    assert terminal("region", "list", "-o", "name") == "sim-north\nsim-south\n"
    after = terminal.contexts.contexts[name].tokens
    assert after.access.reveal() not in {"run out", before.tokens.access.reveal()}
    assert after.refresh is not None
    assert before.tokens.refresh is not None
    assert after.refresh.reveal() != before.tokens.refresh.reveal()
    assert regions(name, stale, terminal), "it took what another command had renewed"
    assert terminal.contexts.contexts[name].tokens.refresh == after.refresh


def test_logging_out_ends_the_login_there_and_here(
    terminal: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log_in_with_a_browser(terminal, remuda_up, monkeypatch, capsys, "--name", "work")
    _, context = terminal.contexts.find("work")
    assert terminal("logout") == "You are logged out of work.\n"
    assert terminal.contexts.contexts == {}
    assert terminal.refused("instance", "list").startswith("You are not logged in: run remuda login")
    assert context.tokens.refresh is not None
    form = {"grant_type": "refresh_token", "client_id": "remuda-cli", "refresh_token": context.tokens.refresh.reveal()}
    assert httpx2.post(f"{remuda_up.running.url}/identity/oauth2/v2/token", data=form).status_code == 400
    ContextsFile(terminal.file).update(lambda all_: replace(all_.with_context("work", context), current="work"))
    assert (
        terminal.refused("instance", "list")
        == "You are no longer logged in (context work): log in again with remuda login."
    )


def test_who_is_told_no_in_the_browser_is_not_logged_in(
    terminal: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def deny(_seconds: float) -> None:
        address = capsys.readouterr().out.split()[1]
        with httpx2.Client(follow_redirects=True) as browser:
            page = browser.get(address)
            known = {"email": "admin@remuda.local", "username": "admin@remuda.local", "password": remuda_up.password}
            origin = {"Origin": remuda_up.running.url}
            while "deny" not in page.text:
                form = Forms(page.text)
                filled = {name: known.get(name, value) for name, value in form.fields.items()}
                page = browser.post(form.action, data=filled, headers=origin)
            form = Forms(page.text)
            answer = {
                name: "deny" if value in {"allow", "approve", "yes"} else value for name, value in form.fields.items()
            }
            browser.post(form.action, data=answer, headers=origin)

    monkeypatch.setattr(logging_in, "sleep", deny)
    said = terminal.refused("login", remuda_up.running.url)
    assert said == "The login was denied in the browser: nothing has changed here."
    assert terminal.contexts.contexts == {}


def test_a_script_logs_in_with_what_the_first_start_left(terminal: Terminal, remuda_up: Cloud) -> None:
    told = terminal("login", "--credentials", str(remuda_up.credentials), "--name", "scripts")
    assert told.startswith("You are logged in as the service account ")
    assert told.endswith(f"{HERE}\n")
    assert remuda_up.running.credentials["token"] not in told
    assert terminal.contexts.current == "scripts"
    assert terminal("logout", "scripts") == "You are logged out of scripts.\n"
    terminal("login", "--credentials", str(remuda_up.credentials))
    assert terminal("region", "list", "-o", "name"), "a token that was made for scripts is not ended by one of them"


def test_a_script_may_reach_it_elsewhere_than_the_file_says(terminal: Terminal, remuda_up: Cloud) -> None:
    elsewhere = remuda_up.running.url.replace("127.0.0.1", "localhost")
    terminal("login", f"{elsewhere}/", "--credentials", str(remuda_up.credentials))
    assert terminal.contexts.contexts["default"].endpoints["compute"] == f"{elsewhere}/compute"
    assert terminal("region", "list", "-o", "name") == "sim-north\nsim-south\n"


def test_one_may_say_where_to_work(terminal: Terminal, remuda_up: Cloud) -> None:
    words = ("login", "--credentials", str(remuda_up.credentials))
    assert HERE in terminal(*words, "--organization", "default", "--project", "default")
    said = terminal.refused(*words, "--project", "nope")
    assert said.startswith("The project nope does not exist: choose from ")
    assert (
        terminal.refused(*words, "--organization", "acme")
        == "The organization acme does not exist: choose from default."
    )


def test_what_is_no_credentials_file_is_one_sentence(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    remedy = "name the file that remuda up wrote to its data directory."
    said = terminal.refused("login", "--credentials", str(file))
    assert said == f"--credentials {file} cannot be read (No such file or directory): {remedy}"
    file.write_text("{}")
    assert (
        terminal.refused("login", "--credentials", str(file))
        == f"--credentials {file} is not a credentials.json: {remedy}"
    )


def test_a_token_that_is_not_taken_there_is_told_with_its_file(
    terminal: Terminal, remuda_up: Cloud, tmp_path: Path
) -> None:
    file = tmp_path / "other.json"
    file.write_text(msgspec.json.encode({**remuda_up.running.credentials, "token": "x"}).decode())
    said = terminal.refused("login", "--credentials", str(file), "--name", "bad")
    assert said == (
        f"--credentials {file} has a token that {remuda_up.running.url} rejects: name the file in the data "
        "directory of the remuda up that runs there."
    )
    assert terminal.contexts.contexts == {}


def test_a_login_without_a_name_is_refused(terminal: Terminal, remuda_up: Cloud) -> None:
    said = terminal.refused("login", "--credentials", str(remuda_up.credentials), "--name", "")
    assert said == "--name is empty: give the login a name such as work."


def test_a_server_that_does_not_answer_is_one_sentence(terminal: Terminal, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        gone = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    said = terminal.refused("login", gone)
    assert said.startswith(f"The server {gone} cannot be reached (")
    assert said.endswith("): try again, and check its address if it persists.")
    remedy = "give one such as http://127.0.0.1:8080."
    assert (
        terminal.refused("login", "http://127.0.0.1:x")
        == f"http://127.0.0.1:x/identity is not a valid address: {remedy}"
    )
    credentials = tmp_path / "credentials.json"
    credentials.write_text('{"endpoints": {}, "token": "x"}')
    said = terminal.refused("login", "http://127.0.0.1:x", "--credentials", str(credentials))
    assert said == f"http://127.0.0.1:x/identity is not a valid address: {remedy}"
    tokens = LoginTokens(access=Secret("a"), refresh=Secret("b"))
    context = LoginContext(endpoints={"identity": f"{gone}/identity", "region": f"{gone}/region"}, tokens=tokens)
    ContextsFile(terminal.file).update(lambda all_: replace(all_.with_context("gone", context), current="gone"))
    assert terminal.refused("region", "list").startswith(f"The server {gone} cannot be reached (")
    said = terminal.refused("instance", "list")
    assert said == "The context gone has no address of the service compute: run remuda login again."
    said = terminal("logout")
    assert said.startswith("The context gone was deleted. Its login stays valid until it expires: ")
    assert terminal.contexts.contexts == {}


def test_what_is_no_remuda_is_told_apart(terminal: Terminal, remuda_up: Cloud) -> None:
    elsewhere = f"{remuda_up.running.url}/nowhere"
    said = f"{elsewhere}/identity is not the identity service of Remuda: give the address that remuda up prints."
    assert terminal.refused("login", elsewhere) == said


def test_a_token_that_is_refused_and_cannot_be_renewed_is_a_login_that_has_ended(user: Terminal) -> None:
    name, found = user.contexts.find(None)
    ContextsFile(user.file).update(
        lambda all_: all_.with_context(name, replace(found, tokens=LoginTokens(access=Secret("x"))))
    )
    assert (
        user.refused("region", "list")
        == "You are no longer logged in (context default): log in again with remuda login."
    )


def test_a_login_that_another_command_has_ended_is_not_renewed(user: Terminal) -> None:
    name, found = user.contexts.find(None)
    stale = replace(found, tokens=LoginTokens(access=Secret("run out"), refresh=Secret("spent")))
    user("logout")
    with pytest.raises(Unauthenticated, match="no longer logged in"):
        regions(name, stale, user)
