"""Every state that an instance can be in, explained: tests/golden/texts/explanations.txt is what users read.

`REMUDA_WRITE_GOLDEN=1 pytest tests/compute/test_history_states.py` writes it again: then read what changed.
"""

import os
from pathlib import Path

import msgspec
import pytest

from remuda.compute.history.explanation import ExplanationInput, explain
from remuda.compute.history.reasons import PowerRequest
from remuda.compute.history.schema import ExplanationRead
from remuda.compute.kinds import AppliedSpec, Protection
from remuda.operations.kinds import Failure
from tests.kit.compute.explanations import FINE, NOW, SINCE, instance, known, operation, said, server, showing
from tests.kit.compute.region_api import network_read

GOLDEN = Path(__file__).parents[1] / "golden" / "texts" / "explanations.txt"
IS_WRITING = bool(os.environ.get("REMUDA_WRITE_GOLDEN"))

GOING = network_read(is_deleting=True)
BROKEN = said("Errored", "the host died", kind="Healthy")
PROTECTED = Protection(deletion=True, plan=True)
UNDONE = Failure(code="unavailable", message="identity did not respond in time")
CHANGED = msgspec.structs.replace(instance(FINE), metadata=msgspec.structs.replace(instance().metadata, generation=2))
STALLED = said("Provisioning", "the server is being created", "True", "Stalled")
REPLACING = said("Replacing", "the server is being replaced: the server is starting", "True", "Rebuilding")

STATES: dict[str, ExplanationInput] = {
    "all is well": known(instance(FINE)),
    "its server broke": known(showing(instance(FINE, BROKEN), power_state="Error")),
    "it is ill": known(instance(FINE, said("Degraded", "one disk is slow", kind="Healthy"))),
    "it has drifted": known(instance(FINE, said("ChangedAtProvider", "its flavor is large", "True", "Drifted"))),
    "somebody stopped it": known(
        showing(instance(FINE), power_state="Stopped"),
        power=PowerRequest(is_stop=True, actor="ann@acme.com", time=SINCE),
    ),
    "it was stopped elsewhere": known(
        showing(instance(FINE), power_state="Stopped"),
        power=PowerRequest(is_stop=False, actor="bob@acme.com", time=SINCE),
    ),
    "it is new": known(showing(instance(), has_server=False), servers=[]),
    "the server is being created": known(
        instance(said("Provisioning", "the server is being created")),
        servers=[server("provisioning", "Provisioning", "the server is starting")],
    ),
    "its server is stopping": known(
        showing(instance(said("Provisioning", "it is stopping")), applied=AppliedSpec("small", "linux")),
        servers=[server("provisioning", "Provisioning", "it is stopping", power_state="Stopping")],
    ),
    "its network is being created": known(
        instance(said("Provisioning", "the server is being created")),
        servers=[server("provisioning", "DependencyNotReady", "its network is being created")],
    ),
    "its quota is missing": known(
        instance(said("QuotaExceeded", "the quota of its organization or project is exhausted")), servers=[]
    ),
    "its region is full": known(instance(said("NoCapacity", "no host has capacity for its flavor now"))),
    "its image is gone": known(
        instance(said("DependencyNotFound", "requested image does not exist or is not accessible")), servers=[]
    ),
    "its provider rejects": known(
        instance(said("ProviderRejected", "the provider does not offer its flavor, image or host as they were"))
    ),
    "its network is full": known(instance(said("AddressesExhausted", "its network has no free address"))),
    "its name is taken": known(
        instance(said("NameTaken", "a server of another owner has this name on the network")), servers=[]
    ),
    "its server never came up": known(instance(said("Errored", "it could not be brought up: no valid host was found"))),
    "it was just changed": known(CHANGED),
    "it is being replaced": known(
        instance(said("Rebuilding", "the server is starting"), REPLACING),
        servers=[server("provisioning", "Provisioning", "the server is starting")],
    ),
    "its rebuild failed": known(
        instance(said("Errored", "the rebuild failed: rebuild it again or select another image"), BROKEN)
    ),
    "its server vanished just now": known(instance(FINE), servers=[]),
    "its server vanished": known(
        instance(said("ServerMissing", "the server was not found; confirming that")), servers=[]
    ),
    "its server is deleted by somebody": known(
        instance(said("ServerDeleting", "the server is being deleted and will be created again"))
    ),
    "it has two servers": known(instance(said("AmbiguousServer")), servers=[server(), server()]),
    "its network is being deleted": known(instance(FINE), network=GOING),
    "the network was deleted": known(instance(FINE), network=None),
    "an operation is open": known(instance(FINE), operations=[operation()]),
    "an operation is stuck": known(instance(FINE), operations=[operation("stuck", error=UNDONE, next_attempt=NOW)]),
    "region does not respond": known(instance(FINE), servers=None, network=None),
    "it is paused": known(instance(FINE, pause=True)),
    "no progress for long": known(instance(said("Provisioning", "the server is being created"), STALLED)),
    "it is protected": known(instance(FINE, protection=PROTECTED)),
    "its project protects it": known(instance(FINE), policy=PROTECTED),
    "it is being deleted": known(
        instance(said("Deprovisioning", "the server is being deleted"), marked=True, protection=PROTECTED)
    ),
    "an unknown reason": known(instance(said("Peculiar", "an unexpected error occurred"))),
}


def written(name: str, told: ExplanationRead) -> str:
    return "".join(f"{line}\n" for line in (f"# {name}: {told.state}", *told.messages))


def test_every_state_is_explained_as_it_is_written_down() -> None:
    told = "\n".join(written(name, explain(state)) for name, state in STATES.items())
    if IS_WRITING:
        GOLDEN.write_text(told)
    assert told == GOLDEN.read_text(), "an explanation is another one: look whether that is right"


@pytest.mark.parametrize("name", STATES)
def test_whatever_keeps_it_is_told_with_who_can_unblock_it_and_how(name: str) -> None:
    told = explain(STATES[name])
    for wait in told.waiting_for:
        at = told.messages.index(wait.message)
        following = " ".join(told.messages[at + 1 : at + 3])
        assert ("No action is needed." if wait.resolved_by == "controller" else "can resolve this.") in following
        assert wait.remedy in following or wait.resolved_by == "controller"


@pytest.mark.parametrize("name", STATES)
def test_an_explanation_is_made_of_sentences(name: str) -> None:
    for line in explain(STATES[name]).messages:
        assert line[0].isupper()
        assert line.endswith(".")
        assert not [bad for bad in ("..", " .", "::", "  ", ". :", "None") if bad in line]
