"""Who made an object and who pays for it, as its metadata keeps them."""

from datetime import UTC, datetime

import pytest

from remuda.access.principal import Principal
from remuda.resources.labels import (
    CREATOR,
    DESCRIPTION,
    MODIFIER,
    NAME,
    ORGANIZATION,
    PAYING_CREATOR,
    PAYING_ORGANIZATION,
    PAYING_PROJECT,
)
from remuda.resources.metadata import changed_metadata, new_metadata
from remuda.resources.wire import MetadataWrite

ACME = "a0000000-0000-4000-8000-000000000001"
BLUE = "b0000000-0000-4000-8000-000000000002"
WISH = MetadataWrite(name="bella", description="a horse")


def test_a_principal_leaves_word_of_who_pays_and_a_name_alone_does_not() -> None:
    service = Principal(subject="region", type="system", actor="ann@example.com", organization=ACME, project=BLUE)
    made = new_metadata("x", WISH, service, labels={ORGANIZATION: BLUE})
    assert made.labels == {ORGANIZATION: BLUE, NAME: "bella", PAYING_ORGANIZATION: ACME, PAYING_PROJECT: BLUE}
    assert made.annotations == {CREATOR: "region", PAYING_CREATOR: "ann@example.com", DESCRIPTION: "a horse"}
    plain = new_metadata("x", WISH, "us", labels={})
    assert (plain.labels, plain.annotations) == ({NAME: "bella"}, {CREATOR: "us", DESCRIPTION: "a horse"})


@pytest.mark.parametrize("said", [None, "", "not an id", "x" * 5000, "a/b"])
def test_what_is_no_id_is_no_label(said: str | None) -> None:
    made = new_metadata("x", WISH, Principal(subject="a", type="system", organization=said, project=said), labels={})
    assert made.labels == {NAME: "bella"}


def test_who_pays_stays_whoever_changes_it() -> None:
    made = new_metadata("x", WISH, Principal(subject="ann", type="user", organization=ACME), labels={})
    changed = changed_metadata(made, MetadataWrite(name="bolt"), "ben", datetime(2026, 1, 1, tzinfo=UTC))
    assert changed.labels == {NAME: "bolt", PAYING_ORGANIZATION: ACME}
    assert (changed.annotations[CREATOR], changed.annotations[PAYING_CREATOR]) == ("ann", "ann")
    assert changed.annotations[MODIFIER] == "ben"
