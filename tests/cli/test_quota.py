"""`remuda quota`, against a real process: who sees limits, who sets them, and how they are written."""

import pytest

from tests.kit.processes.shell import let_in
from tests.kit.processes.terminal import Cloud, Terminal


def test_quotas_are_seen_by_their_users_and_set_by_administrators(
    user: Terminal, remuda_up: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    headings, *rows = user("quota", "show").splitlines()
    assert headings.split() == ["KIND", "USED", "FREE", "LIMIT"]
    assert ["filestorage", "0", "1", "TiB", "1", "TiB"] in [row.split() for row in rows]
    said = user.refused("quota", "set", "clusters=7")
    assert said.endswith("is not permitted: ask the operator of the platform.")
    for wrong in ("clusters", "clusters=many", "=3", "filestorage=1GB", "filestorage=1.5TiB"):
        said = user.refused("quota", "set", wrong)
        remedy = "give one such as servers=20 or filestorage=2TiB."
        assert said == f"LIMITS {wrong} is not a limit: {remedy}"
    for large in ("servers=99999999999999999999999", "filestorage=8Pi", "servers=9007199254740992"):
        said = user.refused("quota", "set", large)
        assert said == f"LIMITS {large} is too large: give at most 9007199254740991."
    assert user.refused("quota", "set", "horses=1").startswith("LIMITS name horses: the kinds are clusters, ")
    limited = {each["kind"]: each["quantity"] for each in user.json("quota", "set", "clusters=3", "--scope", "project")}
    whole = {each["kind"]: each["quantity"] for each in user.json("quota", "show")}
    assert limited == {**whole, "clusters": 3}

    async def browse(_seconds: float) -> None:
        let_in(capsys.readouterr().out.split()[1], remuda_up.password)

    monkeypatch.setattr("remuda.cli.commands.login.sleep", browse)
    user("login", remuda_up.running.url, "--name", "admin")
    changed = {each["kind"]: each["quantity"] for each in user.json("quota", "set", "clusters=7")}
    assert changed == {**whole, "clusters": 7}, "the others stay"
    assert user("quota", "set", "clusters=5", "-o", "name").startswith("clusters\n")


def test_a_limit_is_removed_and_one_below_the_use_is_refused_with_both_numbers(user: Terminal) -> None:
    def limits(*words: str) -> dict[str, int]:
        return {each["kind"]: each["quantity"] for each in user.json("quota", *words, "--scope", "project")}

    before = limits("unset", "clusters", "gpus")
    assert limits("set", "clusters=3", "gpus=2") == before | {"clusters": 3, "gpus": 2}
    assert limits("unset", "clusters") == before | {"gpus": 2}
    assert limits("unset", "gpus", "clusters") == before
    assert user.refused("quota", "unset", "horses").startswith("KINDS name horses: the kinds are clusters, ")
    assert user.refused("quota", "unset") == "KINDS are missing: give one such as servers."
    user("network", "create", "counted", "--region", "sim-north")
    used = {each["kind"]: each["used"] for each in user.json("quota", "show", "--scope", "project")}["networks"]
    said = user.refused("quota", "set", f"networks={used - 1}", "--scope", "project")
    assert said == (
        f"Project quota of {used - 1} networks is below the use of {used}: set at least {used}, or delete something "
        "that uses it."
    )
    assert limits("show") == before


@pytest.mark.parametrize(
    ("written", "number"),
    [("5", 5), ("1Ki", 1 << 10), ("3MiB", 3 << 20), ("1GiB", 1 << 30), ("1 TiB", 1 << 40), ("7Pi", 7 << 50)],
)
def test_bytes_are_written_as_they_are_shown(written: str, number: int, user: Terminal) -> None:
    told = user.json("quota", "set", f"filestorage={written}", "--scope", "project")
    user("quota", "set", "filestorage=1TiB", "--scope", "project")
    assert {each["kind"]: each["quantity"] for each in told}["filestorage"] == number
    said = user.refused("quota", "set", "servers=1Ki", "--scope", "project")
    assert said == "LIMITS give servers in bytes: give a number, such as servers=20."


def test_who_can_raise_a_limit_is_told_with_it(user: Terminal) -> None:
    used = {each["kind"]: each["used"] for each in user.json("quota", "show", "--scope", "project")}["networks"]
    limit = {each["kind"]: each["quantity"] for each in user.json("quota", "show")}["networks"]
    user("quota", "set", f"networks={used}", "--scope", "project")
    said = user.refused("network", "create", "beyond", "--region", "sim-north")
    user("quota", "set", f"networks={limit}", "--scope", "project")
    assert said == (
        f"Total networks allocation of {used + 1} would exceed project quota limit of {used}: remuda quota show "
        "--scope project shows the usage, and an administrator of the organization can raise the limit."
    )
