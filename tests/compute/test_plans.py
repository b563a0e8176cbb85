"""What holds for every plan, whatever is changed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.compute.instances.rules import desired_server
from remuda.compute.instances.updates import subject_of
from remuda.compute.kinds import ComputeInstance, InstanceStatus, PowerState, Protection
from remuda.compute.plans.diff import STEP_KINDS, changed_fields, required_steps, with_fields
from remuda.compute.plans.fields import FIELDS, Field, StepKind
from remuda.compute.plans.plan import plan_update
from remuda.compute.plans.schema import Attribute, PlanRead
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.region.servers.schema import ServerCreate, ServerCreateSpec, ServerNetworkingWire
from remuda.resources.schema import MetadataWrite, TagWire
from tests.kit.compute.plans import (
    BEFORE,
    BROKEN,
    CANNOT_KEEP_PORTS,
    CAPABILITIES,
    FLAVORS,
    IMAGES,
    REPLACED,
    STOPPED,
    TO_BE_REPLACED,
    changed,
    flavor,
    image,
    plan_of,
    side_of,
    structs,
)

NOTHING_ELSE: dict[str, Any] = {}
DISRUPTIVE = {"rebuild", "replace"}


def wants() -> st.SearchStrategy[ComputeInstance]:
    """Return instances of which all kinds of things are wanted."""
    names = st.lists(st.sampled_from(["a", "b", "c"]), unique=True).map(tuple)
    return st.builds(
        lambda description, networking, spec: changed(description=description, networking=networking, **spec),
        st.sampled_from(["", "the shop", "another"]),
        st.fixed_dictionaries(
            {
                "security_group_ids": names,
                "public_ip": st.sampled_from([None, False, True]),
                "allowed_source_addresses": st.sampled_from([(), ("10.0.0.0/8",), ("10.8.0.0/16", "10.0.0.0/8")]),
            }
        ),
        st.fixed_dictionaries(
            {
                "flavor_id": st.sampled_from([*FLAVORS, "flavor-gone"]),
                "image_id": st.sampled_from([*IMAGES, "image-gone"]),
                "ssh_certificate_authority_id": st.sampled_from(["", "x", "y"]),
                "user_data": st.sampled_from([None, Secret("QQ=="), Secret("Qg==")]),
                "protection": st.builds(Protection, deletion=st.booleans(), plan=st.booleans()),
                "tags": names.map(lambda each: tuple(Tag(name, "1") for name in each)),
            }
        ),
    )


def setups() -> st.SearchStrategy[frozenset[str]]:
    return st.sampled_from([CAPABILITIES, CANNOT_KEEP_PORTS])


def kinds_of(plan: PlanRead) -> list[StepKind]:
    return [step.kind for step in plan.steps]


def things(plan: PlanRead) -> tuple[list[Attribute], list[Attribute]]:
    return [each.attribute for each in plan.destroyed], [each.attribute for each in plan.preserved]


@given(wants(), setups())
def test_no_change_is_no_step(instance: ComputeInstance, capabilities: frozenset[str]) -> None:
    plan = plan_of(instance, instance, capabilities)
    assert (plan.steps, plan.destroyed, plan.is_destructive) == ((), (), False)
    assert plan.downtime.extent == "none"
    assert all(each.delta == 0 for each in plan.quota)
    assert plan.message == "Nothing changes."


@given(wants(), wants(), setups())
def test_the_way_there_is_not_the_way_back(
    one: ComputeInstance, other: ComputeInstance, capabilities: frozenset[str]
) -> None:
    there, back = plan_of(other, one, capabilities), plan_of(one, other, capabilities)
    if there.steps:
        assert there.hash != back.hash
    assert bool(there.steps) == bool(back.steps)
    assert [each.delta for each in there.quota] == [-each.delta for each in back.quota]


@given(wants(), wants(), setups())
def test_a_plan_is_destructive_if_and_only_if_something_is_lost(
    one: ComputeInstance, other: ComputeInstance, capabilities: frozenset[str]
) -> None:
    plan = plan_of(other, one, capabilities)
    gives_up = one.spec.wants_public_ip and not other.spec.wants_public_ip
    assert plan.is_destructive == bool(plan.destroyed) == bool(DISRUPTIVE & set(kinds_of(plan)) or gives_up)


@given(wants(), wants(), setups())
def test_everything_that_an_instance_has_is_lost_or_survives_and_never_both(
    one: ComputeInstance, other: ComputeInstance, capabilities: frozenset[str]
) -> None:
    lost, survives = things(plan_of(other, one, capabilities))
    assert len({*lost, *survives}) == len(lost) + len(survives)
    assert {*lost, *survives} - {"publicIP"} == {
        "id", "name", "privateIP", "macAddress", "rootDisk", "sshHostKeys", "memory"
    }  # fmt: skip
    assert ("publicIP" in {*lost, *survives}) == one.spec.wants_public_ip
    assert {"id", "name"} <= set(survives)


@given(wants(), wants(), setups())
def test_each_change_is_in_one_step_and_steps_go_from_the_least_to_the_most(
    one: ComputeInstance, other: ComputeInstance, capabilities: frozenset[str]
) -> None:
    plan = plan_of(other, one, capabilities)
    fields = [change.field for step in plan.steps for change in step.changes]
    assert len(set(fields)) == len(fields)
    assert set(changed_fields(desired_server(one), desired_server(other))) <= set(fields)
    assert kinds_of(plan) == sorted(kinds_of(plan), key=STEP_KINDS.index)
    assert len(DISRUPTIVE & set(kinds_of(plan))) <= 1, "one of them brings what the other would"
    assert all(step.changes for step in plan.steps)
    assert all(change.message.endswith(".") for step in plan.steps for change in step.changes)


@given(wants(), wants())
def test_user_data_waits_for_a_new_disk_and_only_for_that(one: ComputeInstance, other: ComputeInstance) -> None:
    plan = plan_of(other, one)
    at = [step.kind for step in plan.steps if "spec.userData" in [change.field for change in step.changes]]
    again = [kind for kind in kinds_of(plan) if kind in DISRUPTIVE]
    is_changed = one.spec.user_data != other.spec.user_data
    assert at == ((again or ["deferred"]) if is_changed else [])


@given(wants(), wants())
def test_it_is_down_exactly_while_it_starts_again(one: ComputeInstance, other: ComputeInstance) -> None:
    plan = plan_of(other, one)
    assert (plan.downtime.extent != "none") == bool(DISRUPTIVE & set(kinds_of(plan)))


@given(wants(), wants(), st.builds(InstanceStatus, private_ip=st.text(), public_ip=st.text(), mac_address=st.text()))
def test_the_hash_does_not_hang_on_what_is_observed(
    one: ComputeInstance, other: ComputeInstance, status: InstanceStatus
) -> None:
    seen = structs.replace(one, status=status)
    assert plan_of(other, one).hash == plan_of(other, seen).hash


OTHERWISE: dict[str, Callable[[ComputeInstance], dict[str, Any]]] = {
    "the flavor it has": lambda _: {"before": {"flavor": flavor("small", 4)}},
    "the flavor it gets": lambda _: {"after": {"flavor": flavor("large", 9)}},
    "the image it has": lambda _: {"before": {"image": image("jammy", "22.10")}},
    "the image it gets": lambda _: {"after": {"image": image("noble", "24.10")}},
    "a flavor that is offered no more": lambda _: {"before": {"flavor": None}},
    "another incarnation": lambda _: {"uid": "33333333-3333-4333-8333-333333333333"},
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_the_hash_is_another_one_with(what: str) -> None:
    after = changed(flavor_id="flavor-large", image_id="image-noble")
    otherwise = OTHERWISE[what](after)
    subject = subject_of(BEFORE)
    plan = plan_update(
        replace(subject, uid=otherwise.get("uid", subject.uid)),
        side_of(BEFORE, **otherwise.get("before", NOTHING_ELSE)),
        side_of(after, **otherwise.get("after", NOTHING_ELSE)),
        CAPABILITIES,
    )
    assert plan.hash != plan_of(after).hash
    assert kinds_of(plan) == ["replace"]


def test_the_hash_does_not_hang_on_how_many_are_free() -> None:
    after = changed(flavor_id="flavor-large")
    full = plan_update(
        subject_of(BEFORE), side_of(BEFORE), side_of(after, flavor=flavor("large", 8, free=1)), CAPABILITIES
    )
    assert full.hash == plan_of(after).hash


ONE = ServerCreate(
    metadata=MetadataWrite(name="one"),
    spec=ServerCreateSpec(network_id="n", flavor_id="a", image_id="a", networking=ServerNetworkingWire()),
)
OTHER = ServerCreate(
    metadata=MetadataWrite(name="other", description="b", tags=(TagWire(name="b", value="1"),)),
    spec=ServerCreateSpec(
        network_id="m",
        flavor_id="b",
        image_id="b",
        rebuilds=1,
        networking=ServerNetworkingWire(security_groups=("b",), public_ip=True, allowed_source_addresses=("b",)),
        user_data="b",
        ssh_certificate_authority_id="b",
    ),
)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_a_server_has_a_class_of_change(field: Field) -> None:
    assert required_steps(ONE, with_fields(ONE, OTHER, [field])) == ((FIELDS[field].step, (field,)),)
    assert required_steps(ONE, ONE) == ()


def test_some_fields_of_another_server_are_taken_over_and_no_others() -> None:
    assert changed_fields(ONE, OTHER) == tuple(FIELDS)
    assert changed_fields(with_fields(ONE, OTHER, FIELDS), OTHER) == ()
    assert with_fields(ONE, OTHER, FIELDS).metadata.name == "one"


def test_a_server_that_has_counted_more_rebuilds_than_its_restored_instance_is_not_rebuilt() -> None:
    counted = with_fields(ONE, OTHER, ["status.rebuilds"])
    assert changed_fields(counted, ONE) == ()
    assert required_steps(counted, ONE) == ()


def test_c13_nothing_that_is_observed_can_make_a_plan() -> None:
    """Everything that a client writes of a server is compared, but for what never changes, and nothing else."""
    written = {
        *(f"metadata.{name}" for name in MetadataWrite.__struct_fields__),
        *(f"spec.{name}" for name in ServerCreateSpec.__struct_fields__),
        *(f"spec.networking.{name}" for name in ServerNetworkingWire.__struct_fields__),
    }
    never = {"metadata.name", "spec.network_id", "spec.networking", "spec.ssh_injection", "spec.infrastructure_ref"}
    assert {row.attribute for row in FIELDS.values()} == written - never
    drifted = structs.replace(BEFORE, status=InstanceStatus(power_state="Error", private_ip="10.9.9.9"))
    assert plan_of(drifted, BEFORE).steps == ()


OF_THE_DISK = {"rootDisk", "sshHostKeys", "memory"}


@given(wants(), wants(), setups(), st.sampled_from([STOPPED, BROKEN, REPLACED, TO_BE_REPLACED]))
def test_how_an_instance_is_decides_nothing_and_promises_nothing_that_it_has_not(
    one: ComputeInstance, other: ComputeInstance, capabilities: frozenset[str], state: ComputeInstance
) -> None:
    usual = plan_of(other, one, capabilities)
    told = plan_update(subject_of(state), side_of(one), side_of(other), capabilities)
    assert (told.hash, told.is_destructive, kinds_of(told)) == (usual.hash, usual.is_destructive, kinds_of(usual))
    assert told.is_destructive == bool(told.destroyed)
    (lost, survives), (usually_lost, usually_survives) = things(told), things(usual)
    assert set(lost) == set(usually_lost) - {"memory"}
    is_repeated = state in (REPLACED, TO_BE_REPLACED)
    assert set(survives) == set(usually_survives) - (OF_THE_DISK if is_repeated else {"memory"})
    if is_repeated:
        assert "already being rebuilt or replaced" in told.downtime.message
    else:
        assert told.downtime.extent == "none"
        assert "no further downtime" in told.downtime.message
    assert "while the instance runs" not in " ".join(step.message for step in told.steps)


@pytest.mark.parametrize("power", [None, "Running"])
def test_what_runs_as_far_as_anybody_knows_is_told(power: PowerState | None) -> None:
    seen = structs.replace(BEFORE, status=InstanceStatus(power_state=power))
    assert "memory" in things(plan_of(changed(seen, description="other"), seen))[1]
    assert "memory" in things(plan_of(changed(seen, image_id="image-noble"), seen))[0]


def test_a_rebuild_that_has_ended_is_none() -> None:
    (said,) = REPLACED.status.conditions
    status = InstanceStatus(power_state="Running", conditions=(structs.replace(said, status="False"),))
    seen = structs.replace(BEFORE, status=status)
    assert set(things(plan_of(changed(seen, description="other"), seen))[1]) >= OF_THE_DISK


def test_c10_a_replacement_keeps_addresses_and_mac_and_the_plan_says_so_where_it_does_not() -> None:
    after = changed(flavor_id="flavor-large")
    lost, survives = things(plan_of(after))
    assert {"privateIP", "macAddress", "publicIP"} <= set(survives)
    assert "privateIP" not in lost
    lost, survives = things(plan_of(after, capabilities=CANNOT_KEEP_PORTS))
    assert {"privateIP", "macAddress", "publicIP"} <= set(lost)
    rebuilt = plan_of(changed(image_id="image-noble"), capabilities=CANNOT_KEEP_PORTS)
    assert {"privateIP", "macAddress", "publicIP"} <= set(things(rebuilt)[1]), "it stays the same server"
