"""Why an instance is as it is, of everything that can be known of one."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from remuda.compute.history.explanation import DeletionCause, Tombstone, explain, explain_deleted
from remuda.compute.history.reasons import REASONS
from remuda.compute.kinds import Protection
from remuda.operations.kinds import Failure
from remuda.resources.conventions import MODIFIED
from tests.kit.compute.explanations import FINE, NOW, SINCE, instance, known, operation, said, server, showing
from tests.kit.compute.region_api import network_read, server_read


def test_of_one_that_is_fine_it_says_so_and_that_it_waits_for_nothing() -> None:
    told = explain(known(instance(FINE)))
    assert told.state == "provisioned"
    assert told.waiting_for == ()
    assert told.messages == ("The instance is provisioned and running.",)
    assert (told.incarnation, told.observed_at) == ("uid-1", NOW)


def test_of_one_that_exceeds_its_quota_it_says_since_when_and_who_can_help() -> None:
    told = explain(known(instance(said("QuotaExceeded", "its project may not have another")), servers=[]))
    assert told.state == "waiting"
    assert told.messages == (
        "The instance is not provisioned.",
        (
            "The quota of the project or organization is exhausted (since 2026-03-04 11:55:00 UTC): its project may "
            "not have another."
        ),
        "The controller retries when something changes, and at least every 66 seconds.",
        (
            "A user who may update the instance can resolve this. Delete unused resources or request more quota: for "
            "the project from an administrator of the organization, for the organization from the operator."
        ),
    )
    (wait,) = told.waiting_for
    assert (wait.reason, wait.since, wait.resolved_by, wait.retry_interval) == ("QuotaExceeded", SINCE, "user", 66)


def test_each_reason_of_its_own_is_what_it_waits_for() -> None:
    for word in REASONS:
        told = explain(known(instance(said(word))))
        assert told.state == "waiting"
        expected = [] if word in {"AmbiguousServer", "NetworkDeleting", "NetworkNotFound", "Paused"} else [word]
        assert [wait.reason for wait in told.waiting_for] == expected, (
            "those are told by what is seen, not by what was said"
        )


def test_where_its_server_knows_better_its_server_is_heard() -> None:
    waiting = instance(said("Provisioning", "the server is being created"))
    told = explain(known(waiting, servers=[server("provisioning", "NoCapacity", "the region has no free host")]))
    assert [(wait.reason, wait.resolved_by) for wait in told.waiting_for] == [("NoCapacity", "user")]
    assert "the region has no free host" in told.waiting_for[0].message


def test_where_it_has_a_word_of_its_own_its_server_is_not_heard() -> None:
    waiting = instance(said("QuotaExceeded"))
    told = explain(known(waiting, servers=[server("provisioning", "NoCapacity", "the region has no free host")]))
    assert [wait.reason for wait in told.waiting_for] == ["QuotaExceeded"]


def test_one_that_nobody_has_looked_at_is_pending() -> None:
    told = explain(known(instance(), servers=[]))
    assert (told.state, [wait.reason for wait in told.waiting_for]) == ("pending", ["Pending"])
    assert told.waiting_for[0].since == SINCE


def test_one_that_was_changed_since_says_that_this_was_not_looked_at() -> None:
    found = instance(FINE)
    changed = replace(found, metadata=replace(found.metadata, generation=2))
    told = explain(known(changed))
    assert (told.state, [wait.reason for wait in told.waiting_for]) == ("changing", ["Pending"])


def test_one_that_is_deleted_waits_for_what_it_had_to_go() -> None:
    told = explain(known(instance(said("Deprovisioning", "its server is going"), marked=True)))
    assert told.state == "deleting"
    assert told.messages[0] == "The instance is being deleted. Deletion was requested at 2026-03-04 11:55:00 UTC."
    assert [wait.reason for wait in told.waiting_for] == ["Deprovisioning"]


def test_a_paused_one_waits_for_nothing_but_that() -> None:
    told = explain(known(instance(said("Provisioning"), pause=True)))
    assert (told.state, [(wait.reason, wait.resolved_by) for wait in told.waiting_for]) == (
        "paused",
        [("Paused", "operator")],
    )


def test_several_servers_are_an_operators_to_sort_out() -> None:
    told = explain(known(instance(said("AmbiguousServer")), servers=[server(), server()]))
    assert [(wait.reason, wait.resolved_by) for wait in told.waiting_for] == [("AmbiguousServer", "operator")]
    assert "there are 2" in told.waiting_for[0].message


def test_a_network_that_goes_deletes_it_too() -> None:
    going = network_read(is_deleting=True)
    told = explain(known(instance(FINE), network=going))
    assert [wait.reason for wait in told.waiting_for] == ["NetworkDeleting"]
    gone = explain(known(instance(FINE), network=None))
    assert [wait.reason for wait in gone.waiting_for] == ["NetworkNotFound"]


def test_without_region_it_tells_that_and_validates_no_network() -> None:
    told = explain(known(instance(FINE), servers=None, network=None))
    assert [wait.reason for wait in told.waiting_for] == ["RegionUnreachable"]
    assert told.messages[0] == "The instance is provisioned and running."


def test_an_operation_that_is_open_says_whose_it_is() -> None:
    told = explain(known(instance(FINE), operations=[operation("done"), operation("running")]))
    (wait,) = told.waiting_for
    assert (wait.reason, wait.since) == ("OperationRunning", SINCE)
    assert "instance.update, requested by ann@acme.com, is running" in wait.message


def test_an_operation_that_is_rolled_back_says_why_and_when_that_is_tried_again() -> None:
    later = NOW + timedelta(seconds=90)
    error = Failure(code="unavailable", message="Identity does not answer.")
    told = explain(known(instance(FINE), operations=[operation("stuck", error=error, next_attempt=later)]))
    (wait,) = told.waiting_for
    assert (wait.reason, wait.resolved_by, wait.next_attempt) == ("Stuck", "operator", later)
    assert "is stuck after this error: Identity does not answer." in wait.message
    assert "The next attempt is at 2026-03-04 12:01:30 UTC." in told.messages


def test_protection_is_told_with_who_can_lift_it() -> None:
    own = explain(known(instance(FINE, protection=Protection(deletion=True))))
    assert own.messages[1:] == ("The instance is protected from deletion. Remove the protection before you delete it.",)
    projects = explain(known(instance(FINE), policy=Protection(deletion=True)))
    assert projects.messages[1:] == (
        "The policy of the project protects the instance from deletion. Change the policy before you delete it.",
    )


def test_what_protects_it_is_no_matter_once_it_goes_with_its_network() -> None:
    told = explain(known(instance(FINE, marked=True, protection=Protection(deletion=True, plan=True))))
    assert not [line for line in told.messages if "protect" in line or "plan" in line]


def test_one_that_stalls_says_since_when() -> None:
    told = explain(known(instance(FINE, said("NoCapacity", "no capacity", "True", "Stalled"))))
    assert told.messages[1:] == ("The instance has made no progress since 2026-03-04 11:55:00 UTC.",)


def test_a_server_that_broke_after_it_ran_is_told_with_what_can_be_done() -> None:
    ill = said("Errored", "the host died", kind="Healthy")
    told = explain(known(showing(instance(FINE, ill), power_state="Error")))
    assert told.state == "failed"
    (wait,) = told.waiting_for
    assert (wait.reason, wait.resolved_by, wait.since, wait.retry_interval) == ("ServerFailed", "user", SINCE, 0)
    assert wait.message.endswith("(since 2026-03-04 11:55:00 UTC): the host died.")
    assert not [line for line in told.messages if "error" in line]


def test_what_is_ill_without_a_word_is_told_without_one() -> None:
    told = explain(known(instance(FINE, said("Degraded", "", kind="Healthy"))))
    assert told.messages[-1] == "The instance is not healthy (since 2026-03-04 11:55:00 UTC)."


def test_a_server_that_is_gone_is_told_before_its_controller_has_seen_it() -> None:
    assert [wait.reason for wait in explain(known(instance(FINE), servers=[])).waiting_for] == ["ServerMissing"]
    new = showing(instance(FINE), has_server=False)
    assert explain(known(new, servers=[])).waiting_for == ()


def test_servers_of_an_earlier_instance_of_its_name_do_not_make_it_ambiguous() -> None:
    earlier, going = server_read(uid="uid-0"), server_read(is_deleting=True)
    assert explain(known(instance(FINE), servers=[server(), earlier, going])).waiting_for == ()


def test_a_server_that_it_is_not_linked_to_makes_it_ambiguous() -> None:
    elsewhere = instance(said("AmbiguousServer"), server_id="another")
    (wait,) = explain(known(elsewhere)).waiting_for
    assert wait.message.endswith("so none is changed: the instance is linked to another one.")


def test_since_when_a_change_waits_is_when_it_was_asked_for() -> None:
    found = instance(FINE)
    asked = NOW - timedelta(seconds=30)
    metadata = replace(found.metadata, generation=2, annotations={MODIFIED: asked.strftime("%Y-%m-%dT%H:%M:%SZ")})
    (wait,) = explain(known(replace(found, metadata=metadata))).waiting_for
    assert (wait.reason, wait.since, wait.resolved_by) == ("Pending", asked, "controller")


def test_what_no_controller_has_looked_at_for_long_is_an_operators_to_look_at() -> None:
    found = instance(FINE)
    metadata = replace(found.metadata, generation=2, creation_timestamp=NOW - timedelta(minutes=6))
    (wait,) = explain(known(replace(found, metadata=metadata))).waiting_for
    assert (wait.reason, wait.resolved_by) == ("Pending", "operator")


def test_what_should_have_come_by_itself_and_did_not_is_an_operators_to_look_at() -> None:
    stalled = said("Provisioning", "being made", "True", "Stalled")
    (wait,) = explain(known(instance(said("Provisioning", "being made"), stalled))).waiting_for
    assert (wait.reason, wait.resolved_by) == ("Provisioning", "operator")
    assert wait.remedy == "This takes longer than expected. Contact the operator."
    (still,) = explain(known(instance(said("NoCapacity", "no capacity"), stalled))).waiting_for
    assert still.resolved_by == "user"


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (DeletionCause("DeletionRequested", "ann@acme.com"), "deletion was requested by ann@acme.com"),
        (DeletionCause("NetworkDeleted", ""), "its network was deleted"),
        (DeletionCause("CreateRolledBack", ""), "its create operation was rolled back"),
        (None, "the cause is not recorded"),
    ],
)
def test_of_one_that_is_gone_it_says_when_it_went_and_why(end: DeletionCause | None, why: str) -> None:
    gone = Tombstone(organization="acme", project="web", region="north", uid="uid-1", time=SINCE)
    told = explain_deleted(gone, end, now=NOW)
    assert (told.state, told.waiting_for, told.incarnation) == ("deleted", (), "uid-1")
    assert told.messages == (f"The instance was deleted at 2026-03-04 11:55:00 UTC: {why}.",)
