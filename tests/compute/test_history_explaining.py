"""Why an instance is as it is, of everything that can be known of one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from remuda.charging.ports import Place
from remuda.compute.history.explaining import Known, explain, explain_gone
from remuda.compute.history.reasons import REASONS
from remuda.compute.kinds.instances import ComputeInstance, InstanceSpec, InstanceStatus, Protection
from remuda.compute.ports import NetworkSeen, ServerFacts, ServerSeen
from remuda.kernel.conditions import Condition
from remuda.operations.kinds import Failure, Operation, OperationSpec, OperationStatus, Phase
from remuda.resources.labels import ORGANIZATION, PROJECT
from remuda.resources.regional import NETWORK, REGION
from remuda.store.objects import Metadata

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=5)
PLACE = Place("acme", "web")
NETWORK_SEEN = NetworkSeen(id="net", name="front", region="north", place=PLACE)
FACTS = ServerFacts(flavor="small", image="linux")
replace = msgspec.structs.replace


def said(reason: str, message: str = "why", status: Any = "False", kind: str = "Available") -> Condition:
    return Condition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=SINCE, observed_generation=1
    )


def instance(*conditions: Condition, marked: bool = False, **spec: Any) -> ComputeInstance:
    metadata = Metadata(
        name="one",
        uid="uid-1",
        generation=1,
        labels={ORGANIZATION: "acme", PROJECT: "web", REGION: "north", NETWORK: "net"},
        creation_timestamp=SINCE,
        deletion_timestamp=SINCE if marked else None,
    )
    wanted = InstanceSpec(flavor_id="small", image_id="linux", **spec)
    status = InstanceStatus(conditions=conditions, power_state="Running")
    return ComputeInstance(metadata=metadata, spec=wanted, status=status)


def server(settling: Any = "provisioned", reason: str = "", message: str = "") -> ServerSeen:
    return ServerSeen(
        id="one",
        name="one",
        place=PLACE,
        region="north",
        network="net",
        facts=FACTS,
        settling=settling,
        reason=reason,
        message=message,
    )


def operation(phase: Phase = "running", **status: Any) -> Operation:
    spec = OperationSpec(
        saga="instance.update",
        subject_kind="computeinstances",
        subject="one",
        actor="ann@acme.com",
        input="{}",
        deadline=NOW,
        process="p",
    )
    metadata = Metadata(name="op-1", creation_timestamp=SINCE)
    return Operation(metadata=metadata, spec=spec, status=OperationStatus(phase=phase, **status))


def known(found: ComputeInstance, **more: Any) -> Known:
    told: dict[str, Any] = {"servers": [server()], "network": NETWORK_SEEN}
    return Known(instance=found, now=NOW, **(told | more))


FINE = said("Provisioned", "provisioned", "True")


def test_of_one_that_is_fine_it_says_so_and_that_it_waits_for_nothing() -> None:
    told = explain(known(instance(FINE)))
    assert told.state == "provisioned"
    assert told.waits == ()
    assert told.sentences == ("It is as it was asked to be, and running: it waits for nothing.",)
    assert (told.incarnation, told.asked_at) == ("uid-1", NOW)


def test_of_one_that_exceeds_its_quota_it_says_since_when_and_who_can_help() -> None:
    told = explain(known(instance(said("QuotaExceeded", "its project may not have another")), servers=[]))
    assert told.state == "waiting"
    assert told.sentences == (
        "It is not as it was asked to be: its project may not have another.",
        (
            "It waits for room in the quota of its project or organization (its project may not have another) since "
            "2026-03-04 11:55:00 UTC."
        ),
        "It is looked at again as soon as something changes, and at least every 60 seconds.",
        (
            "Who can unblock it: an administrator of its organization. Delete something that is not needed, or have an "
            "administrator of the organization raise the quota."
        ),
    )
    (wait,) = told.waits
    assert (wait.reason, wait.since, wait.who, wait.retry_within) == ("QuotaExceeded", SINCE, "administrator", 60)


def test_each_reason_of_its_own_is_what_it_waits_for() -> None:
    for word in REASONS:
        told = explain(known(instance(said(word))))
        assert told.state == "waiting"
        expected = [] if word in {"AmbiguousServer", "NetworkDeleting", "NetworkGone", "Paused"} else [word]
        assert [wait.reason for wait in told.waits] == expected, "those are told by what is seen, not by what was said"


def test_where_its_server_knows_better_its_server_is_heard() -> None:
    waiting = instance(said("Provisioning", "its server is being made"))
    told = explain(known(waiting, servers=[server("provisioning", "NoCapacity", "the region has no room")]))
    assert [(wait.reason, wait.who) for wait in told.waits] == [("NoCapacity", "user")]
    assert "the region has no room" in told.waits[0].sentence


def test_where_it_has_a_word_of_its_own_its_server_is_not_heard() -> None:
    waiting = instance(said("QuotaExceeded"))
    told = explain(known(waiting, servers=[server("provisioning", "NoCapacity", "the region has no room")]))
    assert [wait.reason for wait in told.waits] == ["QuotaExceeded"]


def test_one_that_nobody_has_looked_at_is_pending() -> None:
    told = explain(known(instance(), servers=[]))
    assert (told.state, [wait.reason for wait in told.waits]) == ("pending", ["Pending"])
    assert told.waits[0].since == SINCE


def test_one_that_was_changed_since_says_that_this_was_not_looked_at() -> None:
    found = instance(FINE)
    changed = replace(found, metadata=replace(found.metadata, generation=2))
    told = explain(known(changed))
    assert (told.state, [wait.reason for wait in told.waits]) == ("changing", ["Pending"])


def test_one_that_is_deleted_waits_for_what_it_had_to_go() -> None:
    told = explain(known(instance(said("Deprovisioning", "its server is going"), marked=True)))
    assert told.state == "deleting"
    assert told.sentences[0] == "It is being deleted since 2026-03-04 11:55:00 UTC."
    assert [wait.reason for wait in told.waits] == ["Deprovisioning"]


def test_a_paused_one_waits_for_nothing_but_that() -> None:
    told = explain(known(instance(said("Provisioning"), pause=True)))
    assert (told.state, [(wait.reason, wait.who) for wait in told.waits]) == ("paused", [("Paused", "operator")])


def test_several_servers_are_an_operators_to_sort_out() -> None:
    told = explain(known(instance(said("AmbiguousServer")), servers=[server(), server()]))
    assert [(wait.reason, wait.who) for wait in told.waits] == [("AmbiguousServer", "operator")]
    assert "there are 2" in told.waits[0].sentence


def test_a_network_that_goes_takes_it_along() -> None:
    going = NetworkSeen(id="net", name="front", region="north", place=PLACE, is_marked=True)
    told = explain(known(instance(FINE), network=going))
    assert [wait.reason for wait in told.waits] == ["NetworkDeleting"]
    gone = explain(known(instance(FINE), network=None))
    assert [wait.reason for wait in gone.waits] == ["NetworkGone"]


def test_without_region_it_tells_that_and_judges_no_network() -> None:
    told = explain(known(instance(FINE), servers=None, network=None))
    assert [wait.reason for wait in told.waits] == ["RegionUnreachable"]
    assert told.sentences[0] == "It is as it was asked to be, and running."


def test_an_operation_that_is_open_says_whose_it_is() -> None:
    told = explain(known(instance(FINE), operations=[operation("done"), operation("running")]))
    (wait,) = told.waits
    assert (wait.reason, wait.since) == ("OperationOpen", SINCE)
    assert "instance.update, of ann@acme.com, is running" in wait.sentence


def test_an_operation_that_is_taken_back_says_why_and_when_that_is_tried_again() -> None:
    later = NOW + timedelta(seconds=90)
    error = Failure(code="unavailable", sentence="Identity does not answer.")
    told = explain(known(instance(FINE), operations=[operation("stuck", error=error, next_try=later)]))
    (wait,) = told.waits
    assert (wait.reason, wait.who, wait.next_try) == ("Stuck", "operator", later)
    assert "is stuck because of this: Identity does not answer)" in wait.sentence
    assert "The next try is at 2026-03-04 12:01:30 UTC." in told.sentences


def test_protection_is_told_whoever_demands_it() -> None:
    own = explain(known(instance(FINE, protection=Protection(deletion=True))))
    assert own.sentences[1:] == ("It is protected from deletion: to delete it, take that back first.",)
    projects = explain(known(instance(FINE), policy=Protection(plan=True)))
    assert projects.sentences[1:] == ("A change that destroys something has to carry the hash of its plan.",)


def test_one_that_stalls_or_is_ill_says_since_when() -> None:
    stalled, ill = said("NoCapacity", "no room", "True", "Stalled"), said("Errored", "it crashed", kind="Healthy")
    told = explain(known(instance(FINE, stalled, ill)))
    assert told.sentences[1:] == (
        "It has not moved for too long, since 2026-03-04 11:55:00 UTC: somebody should look.",
        "It is not healthy since 2026-03-04 11:55:00 UTC: it crashed.",
    )


def test_what_should_have_come_by_itself_and_did_not_is_an_operators_to_look_at() -> None:
    stalled = said("Provisioning", "being made", "True", "Stalled")
    (wait,) = explain(known(instance(said("Provisioning", "being made"), stalled))).waits
    assert (wait.reason, wait.who) == ("Provisioning", "operator")
    assert wait.remedy == "It should have moved by now: tell whoever runs the platform."
    (still,) = explain(known(instance(said("NoCapacity", "no room"), stalled))).waits
    assert still.who == "user"


def test_of_one_that_is_gone_it_says_when_it_went() -> None:
    told = explain_gone(since=SINCE, now=NOW, incarnation="uid-1")
    assert (told.state, told.waits, told.incarnation) == ("gone", (), "uid-1")
    assert told.sentences[0].startswith("It is gone since 2026-03-04 11:55:00 UTC")
