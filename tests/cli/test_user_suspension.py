"""`remuda user suspend` and `remuda user resume`, against a real process."""

import pytest

from tests.kit.processes.shell import let_in
from tests.kit.processes.terminal import Cloud, Terminal

JO = "jo@example.com"


def test_an_administrator_suspends_and_resumes_a_person_and_others_do_not(
    user: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is not allowed" in user.refused("user", "suspend", JO, "--yes")

    async def browse(_seconds: float) -> None:
        let_in(capsys.readouterr().out.split()[1], remuda_up.password)

    monkeypatch.setattr("remuda.cli.commands.login.sleep", browse)
    user("login", remuda_up.running.url, "--name", "admin")
    assert user("user", "suspended") == "No one is suspended.\n"
    refused = user.refused("user", "suspend", JO)
    assert refused == (
        "jo@example.com will be suspended in every organization and logged out everywhere. Confirmation needs a "
        "terminal: add --yes to confirm."
    )
    said = user("user", "suspend", "Jo@Example.com", "--reason", "stolen laptop", "--yes")
    assert said == f"{JO} is suspended and logged out everywhere. remuda user resume {JO} ends that.\n"
    headings, row = user("user", "suspended").splitlines()
    assert headings.split() == ["SUBJECT", "SINCE", "(UTC)", "BY", "REASON"]
    assert row.split()[0] == JO
    assert row.endswith("admin@remuda.local  stolen laptop")
    assert user("user", "suspended", "-o", "name") == f"{JO}\n"
    assert "yourself" in user.refused("user", "suspend", "admin@remuda.local", "--yes")
    assert user("user", "resume", JO) == f"{JO} can log in again.\n"
    assert user.refused("user", "resume", JO) == f"EMAIL {JO} is not suspended: remuda user suspended lists who is."
