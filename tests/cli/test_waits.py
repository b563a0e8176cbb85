"""Commands that wait while somebody else makes, changes or restarts what they wait for."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from remuda.cli import progress
from remuda.cli.client.contexts import ContextsFile, LoginContext, LoginContexts, LoginTokens, NamedId
from remuda.kernel.secrets import Secret
from tests.kit.processes.program import running
from tests.kit.processes.terminal import Terminal
from tests.kit.scripted_server import PLAN, Answer, Server, metadata_json, told

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
GONE_TO: Answer = (202, {}, b"")
UUID = "11111111-1111-4111-8111-111111111111"


def instance(status: str, made: str = EARLY, **more: Any) -> dict[str, Any]:
    metadata = metadata_json("web", status, id="i-1", creationTime=made, **more)
    spec, place = {"flavorId": UUID, "imageId": UUID}, {"regionId": "r-1", "networkId": "n-1"}
    return {"metadata": metadata, "spec": spec, "status": place}


@contextmanager
def answered(terminal: Terminal, *answers: Answer) -> Iterator[Server]:
    """A compute that answers this, at which somebody is logged in."""
    with Server(*answers).running() as server:
        here = NamedId(id="p-1", name="acme")
        context = LoginContext(
            endpoints={"compute": server.url}, tokens=LoginTokens(access=Secret("x")), organization=here, project=here
        )
        ContextsFile(terminal.file).update(lambda _: LoginContexts(current="a", contexts={"a": context}))
        yield server


@pytest.mark.parametrize(
    "heir",
    [instance("pending", LATE), instance("deprovisioning", LATE, deletionTime=LATE), instance("pending", EARLY)],
    ids=["made later", "made later and being deleted", "made within the same second"],
)
def test_who_waits_for_an_end_does_not_wait_for_another_of_the_same_name(
    heir: dict[str, Any], terminal: Terminal
) -> None:
    before, going = instance("provisioned"), instance("deprovisioning", deletionTime=LATE)
    looks = [told(going, ETag='"1"'), told(heir, ETag='"2"')]
    with answered(terminal, told([before]), told(before, ETag='"1"'), GONE_TO, *looks) as server:
        shown = terminal("instance", "delete", "web", "--yes", "--wait", "--timeout", "20s")
    assert shown == "The instance web was deleted.\n"
    assert (server.answers, server.asked[2][2]["if-match"]) == ([], '"1"')


def test_what_is_not_seen_to_be_deleted_yet_is_not_gone(terminal: Terminal) -> None:
    """Who reads may be told of a moment before the deletion, and its description may be another by then."""
    before, going = instance("provisioned"), instance("deprovisioning", deletionTime=LATE)
    looks = [told(before, ETag='"1"'), told(going, ETag='"2"'), told(instance("pending", LATE), ETag='"3"')]
    with answered(terminal, told([before]), told(before, ETag='"1"'), GONE_TO, *looks) as server:
        assert terminal("instance", "delete", "web", "--yes", "--wait") == "The instance web was deleted.\n"
    assert server.answers == []


@pytest.mark.parametrize("output", ["table", "name"])
def test_the_same_update_sent_again_waits_for_the_first(output: str, terminal: Terminal) -> None:
    looks = [
        told([instance("provisioning")]),
        told(PLAN),
        told(instance("provisioning")),
        told(instance("provisioned")),
    ]
    shared = [told([instance("provisioned")])] if output == "name" else []  # a name is printed if no other has it
    with answered(terminal, *looks, *shared) as server:
        code, shown, said = terminal.typed("instance", "update", "web", "--public-ip", "--wait", "-o", output)
    assert (code, server.answers) == (0, [])
    first, last = "The instance web already matches: nothing was done.\n", "The instance web is provisioned.\n"
    if output == "table":
        assert (shown, said) == (first + last, "web is provisioning\n")
    else:
        assert (shown, said) == ("web\n", f"{first}web is provisioning\n{last}")


def test_the_same_update_sent_again_fails_where_the_first_has(terminal: Terminal) -> None:
    broken = instance("error")
    with answered(terminal, told([broken]), told(PLAN), told(broken)):
        code, shown, said = terminal.typed("instance", "update", "web", "--public-ip", "--wait")
    assert (code, shown) == (1, "The instance web already matches: nothing was done.\n")
    assert said == "web is error: remuda instance explain web shows the cause and the remedy.\n"


BROKEN: dict[str, Any] = {
    "healthStatus": "error",
    "healthStatusDetail": {"reason": "Errored", "message": "the disk broke"},
}
PLAN_OF_A_REBUILD = PLAN | {"isDestructive": True, "steps": [{"kind": "rebuild", "message": "", "changes": []}]}
SAID = "web is error: the disk broke: remuda instance explain web shows the cause and the remedy.\n"


def test_an_instance_that_broke_is_not_waited_for_although_it_was_provisioned(terminal: Terminal) -> None:
    broken = instance("provisioned", **BROKEN)
    with answered(terminal, told([broken]), told(PLAN), told(broken)) as server:
        code, shown, said = terminal.typed("instance", "update", "web", "--public-ip", "--wait", "--timeout", "1h")
    assert (code, shown, said) == (1, "The instance web already matches: nothing was done.\n", SAID)
    assert server.answers == []


def test_a_start_of_an_instance_that_breaks_ends_with_the_reason(terminal: Terminal) -> None:
    broken = instance("provisioned", **BROKEN)
    broken["status"]["powerState"] = "Error"
    with answered(terminal, told([broken]), GONE_TO, told(broken)) as server:
        code, shown, said = terminal.typed("instance", "start", "web", "--wait", "--timeout", "1h")
    assert (code, shown, said, server.answers) == (1, "", SAID, [])


def test_a_rebuild_that_breaks_again_ends_with_the_reason(terminal: Terminal) -> None:
    looks = [told(instance("provisioning")), told(instance("provisioning")), told(instance("provisioned", **BROKEN))]
    with answered(terminal, told([instance("provisioned", **BROKEN)]), told(PLAN_OF_A_REBUILD), *looks) as server:
        code, _, said = terminal.typed("instance", "rebuild", "web", "--yes", "--wait", "--timeout", "1h")
    assert (code, said, server.answers) == (1, f"web is provisioning\n{SAID}", [])
    method, path, _ = server.asked[2]
    assert (method, path) == ("POST", f"/api/v2/instances/i-1/rebuild?plan={PLAN['hash']}")


def test_a_process_that_is_killed_and_started_again_is_waited_for(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until, sleep, data = progress.wait_until, progress.sleep, tmp_path / "data"
    with running(data) as first, ExitStack() as later:
        terminal("login", "--credentials", str(data / "credentials.json"))

        async def killed(*about: Any, **more: Any) -> Any:
            first.stop(signal.SIGKILL)
            return await wait_until(*about, **more)

        async def start_again(seconds: float) -> None:
            monkeypatch.setattr(progress, "sleep", sleep)
            later.enter_context(running(data, listen=first.url.removeprefix("http://")))
            await sleep(seconds)

        monkeypatch.setattr("remuda.cli.crud.wait_until", killed)
        monkeypatch.setattr(progress, "sleep", start_again)
        code, shown, said = terminal.typed("network", "create", "pad", "--region", "sim-north", "--wait")
        assert code == 0, said
        assert "provisioned" in shown
        assert f"The server {first.url} cannot be reached (" in said
