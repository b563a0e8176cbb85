"""Reserved tags: whose they are, and that nobody else writes them."""

import pytest

from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag
from remuda.resources.tags import is_reserved, own_tags, relabelled, replaced_tags, reserving_service, tag_labels

ALICE = Principal(subject="alice@example.com", type="user")
COMPUTE = Principal(subject="unikorn-compute", type="system")
COMPUTE_FOR_ALICE = Principal(
    subject="unikorn-compute", type="system", actor="alice@example.com", service="unikorn-compute"
)
STORAGE = Principal(subject="uni-storage", type="system")
OURS = Tag("compute.unikorn-cloud.org/instance-id", "a")


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("compute.unikorn-cloud.org/instance-id", "compute"),
        ("images.unikorn-cloud.org:source", "images"),
        ("Compute.Unikorn-Cloud.Org/x", "compute"),
        ("a.storage.unikorn-cloud.org/x", "storage"),
        ("unikorn-cloud.org/x", None),
        ("compute.unikorn-cloud.org", None),
        ("my.compute.example.org/x", None),
        ("environment", None),
    ],
)
def test_a_prefix_belongs_to_the_service_that_it_names(name: str, service: str | None) -> None:
    assert reserving_service(name) == service
    assert is_reserved(name) == (service is not None)


@pytest.mark.parametrize("principal", [COMPUTE, COMPUTE_FOR_ALICE])
def test_a_service_writes_its_own(principal: Principal) -> None:
    assert own_tags((OURS,), principal) == (OURS,)


@pytest.mark.parametrize("principal", [ALICE, STORAGE])
def test_anybody_else_is_refused(principal: Principal) -> None:
    with pytest.raises(Invalid, match=r"compute\.unikorn-cloud\.org/instance-id"):
        own_tags((Tag("team", "red"), OURS), principal)


def test_a_change_by_somebody_else_leaves_them_as_they_are() -> None:
    team = Tag("team", "red")
    assert set(replaced_tags((OURS, Tag("old", "1")), (team,), ALICE)) == {OURS, team}
    assert set(replaced_tags((OURS,), (OURS, team), ALICE)) == {OURS, team}
    with pytest.raises(Invalid):
        replaced_tags((OURS,), (Tag(OURS.name, "b"),), ALICE)


def test_its_service_takes_them_away() -> None:
    assert replaced_tags((OURS,), (), COMPUTE) == ()


@pytest.mark.parametrize(
    "tag",
    [
        Tag("compute.unikorn-cloud.org:instance-id", "a"),
        Tag("Compute.unikorn-cloud.org/instance-id", "a"),
        Tag("compute.unikorn-cloud.org/instance-id", "not a label!"),
        Tag("regions.unikorn-cloud.org/region-id", "a"),
        Tag("team", "red"),
    ],
)
def test_what_does_not_fit_a_label_or_is_one_of_our_own_is_none(tag: Tag) -> None:
    assert tag_labels((OURS, tag)) == {OURS.name: OURS.value}


def test_labels_follow_the_tags_and_all_others_stay() -> None:
    labels = {"unikorn-cloud.org/name": "web", OURS.name: OURS.value}
    assert relabelled(labels, (OURS,), (Tag(OURS.name, "b"),)) == labels | {OURS.name: "b"}
    assert relabelled(labels, (OURS,), ()) == {"unikorn-cloud.org/name": "web"}
