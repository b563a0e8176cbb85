"""Who made an object and who pays for it, as its metadata keeps them."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.kernel.conditions import Condition
from remuda.resources.conventions import (
    CREATOR,
    CREATOR_NAME,
    DESCRIPTION,
    MODIFIED,
    MODIFIER,
    MODIFIER_NAME,
    NAME,
    ORGANIZATION,
    PAYING_CREATOR,
    PAYING_ORGANIZATION,
    PAYING_PROJECT,
)
from remuda.resources.metadata import changed_metadata, new_metadata, read_metadata
from remuda.resources.schema import Detail, MetadataWrite
from remuda.store.objects import Metadata

ACME = "a0000000-0000-4000-8000-000000000001"
BLUE = "b0000000-0000-4000-8000-000000000002"
REQUESTED = MetadataWrite(name="bella", description="a horse")


def test_a_principal_leaves_word_of_who_pays_and_a_name_alone_does_not() -> None:
    service = Principal(subject="region", type="system", actor="ann@example.com", organization=ACME, project=BLUE)
    made = new_metadata("x", REQUESTED, service, labels={ORGANIZATION: BLUE})
    assert made.labels == {ORGANIZATION: BLUE, NAME: "bella", PAYING_ORGANIZATION: ACME, PAYING_PROJECT: BLUE}
    assert made.annotations == {CREATOR: "region", PAYING_CREATOR: "ann@example.com", DESCRIPTION: "a horse"}
    plain = new_metadata("x", REQUESTED, "us", labels={})
    assert (plain.labels, plain.annotations) == ({NAME: "bella"}, {CREATOR: "us", DESCRIPTION: "a horse"})


@pytest.mark.parametrize("said", [None, "", "not an id", "x" * 5000, "a/b"])
def test_what_is_no_id_is_no_label(said: str | None) -> None:
    made = new_metadata(
        "x", REQUESTED, Principal(subject="a", type="system", organization=said, project=said), labels={}
    )
    assert made.labels == {NAME: "bella"}


def test_who_pays_stays_whoever_changes_it() -> None:
    made = new_metadata("x", REQUESTED, Principal(subject="ann", type="user", organization=ACME), labels={})
    ben = Principal(subject="ben", type="user", organization="other")
    changed = changed_metadata(made, MetadataWrite(name="bolt"), ben, datetime(2026, 1, 1, tzinfo=UTC))
    assert changed.labels == {NAME: "bolt", PAYING_ORGANIZATION: ACME}
    assert (changed.annotations[CREATOR], changed.annotations[PAYING_CREATOR]) == ("ann", "ann")
    assert changed.annotations[MODIFIER] == "ben"


def test_a_service_account_is_named_as_it_was_and_its_name_goes_with_the_next_change() -> None:
    robot = Principal(subject=BLUE, type="service", display_name="scripts")
    service = Principal(subject="compute", type="system", actor=BLUE, display_name="scripts")
    made = new_metadata("x", REQUESTED, robot, labels={})
    assert (made.annotations[CREATOR], made.annotations[CREATOR_NAME]) == (BLUE, "scripts")
    assert CREATOR_NAME not in new_metadata("x", REQUESTED, service, labels={}).annotations, "of another subject"
    now = datetime(2026, 1, 1, tzinfo=UTC)
    renamed = changed_metadata(made, REQUESTED, replace(robot, display_name="deployment"), now)
    assert (renamed.annotations[CREATOR_NAME], renamed.annotations[MODIFIER_NAME]) == ("scripts", "deployment")
    shown = read_metadata(replace(renamed, creation_timestamp=now))
    assert (shown.created_by, shown.created_by_name, shown.modified_by_name) == (BLUE, "scripts", "deployment")
    by_person = changed_metadata(renamed, REQUESTED, Principal(subject="ann", type="user"), now)
    assert by_person.annotations[MODIFIER] == "ann"
    assert MODIFIER_NAME not in by_person.annotations


def _read(generation: int, said_of: int | None, *, is_deleting: bool = False) -> tuple[str, Detail | None]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    metadata = Metadata(
        name="x",
        labels={NAME: "bella"},
        generation=generation,
        creation_timestamp=now,
        deletion_timestamp=now if is_deleting else None,
    )
    said = Condition(
        type="Available",
        status="True",
        reason="Provisioned",
        message="provisioned",
        last_transition_time=now,
        observed_generation=said_of,
    )
    read = read_metadata(metadata, (), (said,))
    return read.provisioning_status, read.provisioning_status_detail


def test_what_was_said_of_an_older_generation_is_over() -> None:
    provisioned = Detail(reason="Provisioned", message="provisioned")
    assert _read(2, 2) == ("provisioned", provisioned)
    assert _read(2, None) == ("provisioned", provisioned), "it was not said of what"
    status, detail = _read(3, 2)
    assert (status, detail and detail.reason) == ("provisioning", "Changed")
    assert _read(3, 2, is_deleting=True) == ("deprovisioning", provisioned)


@pytest.mark.parametrize("written", ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-16T00:00:00"])
def test_c12_a_time_of_change_that_is_none_is_not_told(written: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    metadata = Metadata(name="x", labels={NAME: "x"}, annotations={MODIFIED: written}, creation_timestamp=now)
    assert read_metadata(metadata).modified_time is None
