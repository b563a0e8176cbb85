"""`remuda user reset-second-factor`, against a real process."""

import pytest

from tests.kit.processes.shell import let_in
from tests.kit.processes.terminal import Cloud, Terminal

ADMINISTRATOR = "admin@remuda.local"


def test_an_administrator_resets_a_second_factor_and_others_do_not(
    user: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not allowed" in user.refused("user", "reset-second-factor", ADMINISTRATOR, "--yes")

    async def browse(_seconds: float) -> None:
        let_in(capsys.readouterr().out.split()[1], remuda_up.password)

    monkeypatch.setattr("remuda.cli.commands.login.sleep", browse)
    user("login", remuda_up.running.url, "--name", "admin")
    assert "able to log in with the password alone" in user.refused("user", "reset-second-factor", ADMINISTRATOR)
    other = user.refused("user", "reset-second-factor", "unknown@example.com", "--yes")
    assert other.startswith("Resource not found")
    said = user("user", "reset-second-factor", ADMINISTRATOR, "--yes")
    assert said == f"{ADMINISTRATOR} has no second factor any more, and is logged out everywhere.\n"
    assert "log" in user.refused("user", "suspended"), "the administrator's own session has ended, too"
