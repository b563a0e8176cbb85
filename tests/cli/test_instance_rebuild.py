"""`remuda instance rebuild`, against a real process over instant clouds."""

import json

from tests.kit.processes.program import remuda
from tests.kit.processes.terminal import JAMMY, Cloud, Terminal, make, until


def _servers(cloud: Cloud, instance: str) -> list[list[str]]:
    shown = remuda("sim", "list", "--data", str(cloud.running.data)).stdout.splitlines()
    return [each.split() for each in shown if f" {instance} " in each]


def test_a_broken_instance_is_an_error_everywhere_and_is_rebuilt_from_its_image(
    user: Terminal, remuda_up: Cloud
) -> None:
    make(user, "cracked", "--wait")
    before = user.json("instance", "show", "cracked")
    remuda("sim", "fail", "cracked", "--data", str(remuda_up.running.data))
    until(lambda: user.json("instance", "show", "cracked")["status"]["powerState"] == "Error")
    _, row = user("instance", "list", "--network", "cracked-net").splitlines()
    assert row.split()[:3] == ["cracked", "error", "Error"]
    shown = {line.split("  ")[0]: line.rpartition("  ")[2] for line in user("instance", "show", "cracked").splitlines()}
    assert (shown["Status"], shown["Message"], shown["Health"]) == (
        "error",
        "the host failed",
        "error: the host failed",
    )
    assert user.json("instance", "show", "cracked")["metadata"]["healthStatus"] == "error"
    code, _, said = user.typed("instance", "update", "cracked", "--image", JAMMY, "--wait")
    assert (code, said.splitlines()[-1]) == (
        1,
        "cracked is error: the host failed: remuda instance explain cracked shows the cause and the remedy.",
    )
    assert user.refused("instance", "start", "cracked") == (
        "The instance cracked is broken and cannot be started: remuda instance explain cracked shows the cause, and "
        "remuda instance rebuild cracked creates its root disk again."
    )
    planned = user("instance", "plan", "cracked", "--rebuild")
    assert planned.startswith(
        "Plan      The server is rebuilt. The instance loses its root disk and its SSH host keys."
    )
    assert f"again from image {JAMMY} (" in planned
    told = user.refused("instance", "rebuild", "cracked")
    assert told.endswith("Confirmation needs a terminal: add --yes to confirm.")
    user("instance", "rebuild", "cracked", "--yes", "--wait")
    after = user.json("instance", "show", "cracked")
    assert after["status"] == before["status"] | {"rebuilds": 1}
    assert (after["metadata"]["provisioningStatus"], after["metadata"]["healthStatus"]) == ("provisioned", "healthy")
    assert [each[3] for each in _servers(remuda_up, "cracked")] == ["running"]
    timeline = user("instance", "timeline", "cracked")
    assert f"A rebuild from image {JAMMY} was requested by" in timeline
    assert timeline.count("The server was rebuilt.") == 1


def test_a_stopped_instance_is_rebuilt_and_stays_stopped(user: Terminal) -> None:
    make(user, "halted", "--wait")
    assert user("instance", "stop", "halted", "--wait") == "The instance halted is stopped.\n"
    shown = json.loads(user("instance", "rebuild", "halted", "--yes", "--wait", "-o", "json"))
    assert (shown["status"]["powerState"], shown["status"]["rebuilds"]) == ("Stopped", 1)


def test_a_rebuild_is_planned_without_any_other_change(user: Terminal) -> None:
    assert user.refused("instance", "plan", "nobody", "--rebuild", "--public-ip") == (
        "--rebuild plans a rebuild of the instance as it is: leave out the options of an update."
    )
    assert user.refused("instance", "rebuild", "nobody", "--yes").startswith("The instance nobody does not exist")
