"""Every kind of change, and the combinations that matter, with the plan that users are shown.

`REMUDA_WRITE_GOLDEN=1 pytest tests/compute/test_plans_golden.py` writes them again: then read what changed.
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.compute.kinds import ComputeInstance, InstanceStatus
from remuda.compute.plans.diff import STEP_KINDS
from remuda.compute.plans.schema import PlanRead
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from tests.kit.compute.plans import (
    BEFORE,
    BROKEN,
    CANNOT_KEEP_PORTS,
    PROTECTED,
    REPLACED,
    STOPPED,
    TO_BE_REPLACED,
    changed,
    plan_of,
    structs,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "plans"
IS_WRITING = bool(os.environ.get("REMUDA_WRITE_GOLDEN"))

USER_DATA = Secret("I2Nsb3VkLWNvbmZpZwpwYWNrYWdlczogW25naW54XQo=")
UNSEEN = structs.replace(BEFORE, status=InstanceStatus())
GONE = changed(flavor_id="flavor-retired", image_id="image-retired")
WITH_AUTHORITY = changed(ssh_certificate_authority_id="authority-a")

PLANS: dict[str, tuple[ComputeInstance, dict[str, Any]]] = {
    "nothing": (BEFORE, {}),
    "description": (changed(description="the old shop"), {}),
    "tags": (changed(tags=(Tag("tier", "db"), Tag("owner", "anna"))), {}),
    "security-groups": (changed(networking={"security_group_ids": ("group-a", "group-b")}), {}),
    "source-addresses": (changed(networking={"allowed_source_addresses": ("10.8.0.0/16",)}), {}),
    "public-ip-comes": (BEFORE, {"before": changed(networking={"public_ip": False})}),
    "public-ip-goes": (changed(networking={"public_ip": False}), {}),
    "protection": (changed(protection=PROTECTED), {}),
    "user-data": (changed(user_data=USER_DATA), {}),
    "user-data-goes": (changed(user_data=None), {}),
    "image": (changed(image_id="image-noble"), {}),
    "rebuild": (changed(rebuilds=1), {}),
    "second-rebuild": (changed(rebuilds=2), {"before": changed(rebuilds=1)}),
    "rebuild-of-a-broken-instance": (changed(BROKEN, rebuilds=1), {"before": BROKEN}),
    "rebuild-of-a-stopped-instance": (changed(STOPPED, rebuilds=1), {"before": STOPPED}),
    "rebuild-where-the-server-has-failed": (
        changed(BROKEN, rebuilds=1),
        {"before": BROKEN, "takes_images": False},
    ),
    "flavor-and-rebuild": (changed(flavor_id="flavor-large", rebuilds=1), {}),
    "image-of-an-instance-not-seen-yet": (changed(UNSEEN, image_id="image-noble"), {"before": UNSEEN}),
    "flavor": (changed(flavor_id="flavor-large"), {}),
    "flavor-with-gpus": (changed(flavor_id="flavor-gpu"), {}),
    "flavor-of-bare-metal": (changed(flavor_id="flavor-metal"), {}),
    "flavor-where-ports-are-not-kept": (changed(flavor_id="flavor-large"), {"capabilities": CANNOT_KEEP_PORTS}),
    "flavor-and-image-that-are-gone": (BEFORE, {"before": GONE}),
    "ssh-authority-comes": (WITH_AUTHORITY, {}),
    "ssh-authority-goes": (BEFORE, {"before": WITH_AUTHORITY}),
    "ssh-authority-changes": (changed(ssh_certificate_authority_id="authority-b"), {"before": WITH_AUTHORITY}),
    "image-and-user-data": (changed(image_id="image-noble", user_data=USER_DATA), {}),
    "flavor-and-image": (changed(flavor_id="flavor-large", image_id="image-noble"), {}),
    "flavor-beyond-the-quota": (changed(flavor_id="flavor-gpu"), {"free": {"servers": 0, "gpus": 1}}),
    "user-data-and-tags": (changed(user_data=USER_DATA, tags=()), {}),
    "flavor-and-public-ip-goes": (changed(flavor_id="flavor-gpu", networking={"public_ip": False}), {}),
    "everything": (
        changed(
            description="another shop",
            flavor_id="flavor-gpu",
            image_id="image-noble",
            networking={
                "security_group_ids": ("group-b",),
                "public_ip": False,
                "allowed_source_addresses": ("10.8.0.0/16",),
            },
            ssh_certificate_authority_id="authority-a",
            user_data=USER_DATA,
            protection=PROTECTED,
            tags=(),
        ),
        {},
    ),
    "description-of-a-stopped-instance": (changed(STOPPED, description="the old shop"), {"before": STOPPED}),
    "image-of-a-stopped-instance": (changed(STOPPED, image_id="image-noble"), {"before": STOPPED}),
    "description-of-a-broken-instance": (changed(BROKEN, description="the old shop"), {"before": BROKEN}),
    "flavor-of-a-broken-instance": (changed(BROKEN, flavor_id="flavor-large"), {"before": BROKEN}),
    "image-where-the-server-has-failed": (
        changed(BROKEN, image_id="image-noble"),
        {"before": BROKEN, "takes_images": False},
    ),
    "description-while-it-is-replaced": (changed(REPLACED, description="the old shop"), {"before": REPLACED}),
    "image-while-it-is-replaced": (changed(REPLACED, image_id="image-noble"), {"before": REPLACED}),
    "flavor-of-bare-metal-while-it-is-replaced": (changed(REPLACED, flavor_id="flavor-metal"), {"before": REPLACED}),
    "description-before-it-is-replaced": (
        changed(TO_BE_REPLACED, description="the old shop"),
        {"before": TO_BE_REPLACED},
    ),
}
_OBSERVED = re.compile(r"-(of-a-stopped-instance|of-a-broken-instance|(while|before)-it-is-replaced)$")
"""How the names of those end that differ from another one in what is observed alone."""


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_reads_as_it_is_written_down(name: str) -> None:
    after, options = PLANS[name]
    told = msgspec.json.format(msgspec.json.encode(plan_of(after, **options))).decode() + "\n"
    path = GOLDEN / f"{name}.json"
    if IS_WRITING:
        path.write_text(told)
    assert told == path.read_text(), f"{path.name} says otherwise: look whether that is right"


def test_there_is_a_plan_for_every_file_and_a_file_for_every_plan() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(PLANS)


def test_every_class_of_change_is_shown_but_the_one_that_nothing_needs() -> None:
    shown = {step.kind for path in GOLDEN.glob("*.json") for step in read(path).steps}
    assert shown == set(STEP_KINDS) - {"reboot"}


def test_no_plan_tells_what_user_data_says() -> None:
    for secret in (USER_DATA, BEFORE.spec.user_data):
        assert secret is not None
        assert not [path.name for path in GOLDEN.glob("*.json") if secret.reveal() in path.read_text()]


def test_two_plans_have_the_same_hash_only_if_they_differ_in_what_is_observed() -> None:
    hashes = {name: read(GOLDEN / f"{name}.json").hash for name in PLANS}
    assert hashes["image"] == hashes.pop("image-of-an-instance-not-seen-yet")
    assert hashes["flavor-with-gpus"] == hashes.pop("flavor-beyond-the-quota")
    for name in [each for each in PLANS if _OBSERVED.search(each)]:
        assert hashes.pop(name) == hashes[_OBSERVED.sub("", name)], name
    assert len(set(hashes.values())) == len(hashes)


def read(path: Path) -> PlanRead:
    return msgspec.json.decode(path.read_bytes(), type=PlanRead)
