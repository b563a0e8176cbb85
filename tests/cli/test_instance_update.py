"""`remuda instance plan` and `update`: nothing is changed that was not shown, and nothing lost unless agreed to."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from remuda.cli.commands.instance import carry_out
from remuda.compute.plans.schema import PlanRead
from remuda.kernel.errors import PlanChanged, Unusable
from tests.kit.processes.terminal import JAMMY, SMALL, Terminal, make
from tests.kit.scripted_server import PLAN


def flavor_of(user: Terminal, name: str) -> str:
    return str(user.json("instance", "show", name)["spec"]["flavorId"])


def test_a_plan_is_shown_and_changes_nothing(user: Terminal) -> None:
    make(user, "planned", "--public-ip", "--wait")
    before = user.json("instance", "show", "planned")
    shown = user("instance", "plan", "planned", "--flavor", "sim-gpu-8", "--no-public-ip")
    assert "Lost      The public address is released" in shown
    assert "\n          Data on the root disk is lost.\n" in shown
    assert f"private address {before['status']['privateIP']}" in shown
    assert "Quota     gpus 0 -> 1 (+1), floatingips 1 -> 0 (-1)\n" in shown
    assert "Downtime  The instance is down while the server starts" in shown
    told = user.json("instance", "plan", "planned", "--flavor", "sim-gpu-8", "--no-public-ip")
    assert told["isDestructive"]
    assert f"Hash      {told['hash']}\n" in shown
    assert user("instance", "plan", "planned", "--flavor", "sim-gpu-8", "--no-public-ip", "-o", "name") == (
        f"{told['hash']}\n"
    )
    assert user("instance", "plan", "planned") == "Nothing would change.\n"
    assert user.json("instance", "show", "planned") == before


def test_a_plan_says_that_the_quota_does_not_allow_it_and_nothing_is_done(user: Terminal) -> None:
    make(user, "dear", "--wait")
    before = user.json("instance", "show", "dear")
    user("quota", "set", "gpus=0", "--scope", "project")
    try:
        shown = user("instance", "plan", "dear", "--flavor", "sim-gpu-8")
        sentence = (
            "The update would be rejected: it needs 1 more of gpus, and the quota of project and organization has 0 "
            "left. Delete unused resources, or request more quota."
        )
        assert f"\nBlocked   {sentence}\n" in shown
        code, shown, said = user.typed("instance", "update", "dear", "--flavor", "sim-gpu-8", "--yes")
        assert (code, said) == (1, f"Nothing was done. {sentence}\n")
        assert f"\nBlocked   {sentence}\n" in shown
    finally:
        user("quota", "set", "gpus=100", "--scope", "project")
    assert user.json("instance", "show", "dear") == before
    assert "Blocked" not in user("instance", "plan", "dear", "--flavor", "sim-gpu-8")


def test_what_destroys_nothing_is_done_at_once(user: Terminal) -> None:
    make(user, "mild", "--wait")
    shown = user("instance", "update", "mild", "--description", "Quiet.", "--tag", "a=b", "--public-ip", "--wait")
    assert "Lost      Nothing.\n" in shown
    changed = user.json("instance", "show", "mild")
    assert (changed["metadata"]["description"], changed["metadata"]["tags"]) == (
        "Quiet.",
        [{"name": "a", "value": "b"}],
    )
    assert changed["status"]["publicIP"]
    said = user("instance", "update", "mild", "--description", "Quiet.")
    assert said == "The instance mild already matches: nothing was done.\n"


def test_what_destroys_something_is_asked_about_and_done_as_it_was_told(user: Terminal) -> None:
    make(user, "grow", "--wait")
    small = flavor_of(user, "grow")
    code, shown, said = user.typed("instance", "update", "grow", "--flavor", "sim-standard-4")
    assert code == 1
    assert "Lost      Data on the root disk is lost.\n" in shown
    assert said == (
        "The server is replaced. The instance loses its root disk, its SSH host keys and its running programs. "
        "Confirmation needs a terminal: add --yes to confirm.\n"
    )
    assert flavor_of(user, "grow") == small
    before = user.json("instance", "show", "grow")["status"]
    shown = user("instance", "update", "grow", "--flavor", "sim-standard-4", "--yes", "--wait")
    assert "\nFlavor      sim-standard-4\n" in shown
    after = user.json("instance", "show", "grow")["status"]
    assert flavor_of(user, "grow") != small
    assert (after["privateIP"], after["macAddress"]) == (before["privateIP"], before["macAddress"])


def test_an_image_and_groups_can_be_other_ones_and_none(user: Terminal) -> None:
    make(user, "other", "--wait")
    user("security-group", "create", "g", "--network", "other-net", "--allow", "ingress any", "--wait")
    user("instance", "update", "other", "--security-group", "g", "--wait")
    assert "Security groups" in user("instance", "show", "other")
    user("instance", "update", "other", "--no-security-group", "--image", "debian-12-amd64", "--yes", "--wait")
    shown = user("instance", "show", "other")
    assert "Security groups" not in shown
    assert "debian-12-amd64" in shown


def test_programs_get_the_instance_alone(user: Terminal) -> None:
    make(user, "quiet", "--wait")
    for told in ("Lost      Nothing.\n", "The instance quiet already matches: nothing was done.\n"):
        code, shown, said = user.typed("instance", "update", "quiet", "--description", "x", "-o", "json")
        assert (code, json.loads(shown)["metadata"]["description"]) == (0, "x")
        assert told in said, "what users are told is not in their way"


def plan(name: str, *, is_destructive: bool = True, **more: Any) -> dict[str, Any]:
    steps = [{"kind": "replace", "message": "So.", "changes": []}]
    return PLAN | {
        "hash": HASHES[name],
        "isDestructive": is_destructive,
        "message": f"It is {name}.",
        "steps": steps,
        **more,
    }


HASHES = {name: str(number) * 32 for number, name in enumerate(["first", "second", *map(str, range(9))])}


def carried_out(server: "Server", *, yes: bool = False, ask: Callable[[str], str] | None = None) -> str | None:
    """Carry out the first plan at a server."""
    first = msgspec.convert(plan("first"), PlanRead)
    return asyncio.run(carry_out(first, server.change, print, yes=yes, ask=ask))


class Server:
    """Has another plan than the one that is sent, some times."""

    def __init__(self, *plans: dict[str, Any]) -> None:
        self._plans, self.done = [*plans], list[str]()

    async def change(self, sent: str) -> str:
        if self._plans:
            raise PlanChanged(msgspec.json.encode(self._plans.pop(0)))
        self.done.append(sent)
        return f"done as {sent[0]}"


def test_a_plan_that_is_another_one_by_then_is_shown_and_asked_about_again(capsys: pytest.CaptureFixture[str]) -> None:
    server, questions = Server(plan("second")), list[str]()

    def ask(question: str) -> str:
        questions.append(question)
        return "yes"

    assert carried_out(server, ask=ask) == "done as 1"
    assert questions == ["It is first. Continue? [y/N] ", "It is second. Continue? [y/N] "]
    shown = capsys.readouterr().out
    assert shown.index("Hash      0000") < shown.index("The plan has changed") < shown.index("Hash      1111")


def test_who_says_no_to_the_second_plan_has_changed_nothing() -> None:
    server, answers = Server(plan("second")), ["y", "n"]
    with pytest.raises(Unusable, match=r"^Nothing was done\.$"):
        carried_out(server, ask=lambda _: answers.pop(0))
    assert server.done == []


def test_a_plan_that_becomes_harmless_is_not_asked_about() -> None:
    server, answers = Server(plan("second", is_destructive=False)), ["y"]
    assert carried_out(server, ask=lambda _: answers.pop(0)) == "done as 1"


def test_a_plan_that_never_stays_the_same_is_given_up() -> None:
    server = Server(*(plan(str(number)) for number in range(9)))
    with pytest.raises(Unusable, match="Another client keeps changing the instance"):
        carried_out(server, yes=True)
    assert server.done == []


def test_where_nothing_is_left_to_do_nothing_is_done() -> None:
    server = Server(plan("second", steps=[]))
    assert carried_out(server, yes=True) is None
    assert server.done == []


def test_a_source_that_is_no_prefix_is_told_with_its_option(user: Terminal) -> None:
    chosen = ("instance", "create", "x", "--network", "y", "--flavor", SMALL, "--image", JAMMY)
    said = "--source 10.0.0.0/99 is not an IPv4 prefix: give one such as 10.0.0.0/24."
    assert user.refused(*chosen, "--source", "10.8.0.0/16", "--source", "10.0.0.0/99") == said
    for verb in ("plan", "update"):
        assert user.refused("instance", verb, "x", "--source", "10.0.0.0/99") == said
