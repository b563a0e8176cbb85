"""What we write can be read by whoever reads the objects of existing clusters.

(That we can read theirs is in `tests/wire/test_storage.py`.)
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remuda.region.kinds import KINDS
from remuda.region.kinds.loadbalancers import LOAD_BALANCER
from remuda.store.kinds import Registry

REGISTRY = Registry(KINDS)
CONTRACT = [
    each
    for each in json.loads((Path(__file__).parents[1] / "wire" / "storage.json").read_text())
    if each["group"] == "region.unikorn-cloud.org"
]
NOT_OURS = {"spec.openstack.serviceAccountSecret", "spec.kubernetes.kubeConfigSecret"}
"""Where no cluster keeps secrets for us, none is named."""


def missing(theirs: Any, ours: Any, place: str) -> Iterator[str]:
    """Return where an object of ours would not be one of theirs: what they demand or know, and we may not."""
    if surplus := set(ours.get("enum", ())) - set(theirs.get("enum", ours.get("enum", ()))):
        yield f"{place} may be {sorted(surplus)}"
    keys = [schema.get("x-kubernetes-list-map-keys", []) for schema in (theirs, ours)]
    if len(keys[0]) == 1 and keys[0] != keys[1]:
        yield f"{place} is not told apart by {keys[0]}"
    yield from (f"{place}.{name}" for name in {*theirs.get("required", ())} - {*ours.get("required", ())})
    for name, field in theirs.get("properties", {}).items():
        yield from missing(field, ours["properties"][name], f"{place}.{name}")
    if "items" in theirs:
        yield from missing(theirs["items"], ours["items"], f"{place}[]")


@pytest.mark.parametrize("theirs", CONTRACT, ids=lambda theirs: theirs["kind"])
def test_what_existing_clusters_demand_is_always_written(theirs: Any) -> None:
    ours = REGISTRY.named(f"{theirs['plural']}.{theirs['group']}").schema["properties"]
    found = {*missing(theirs["spec"], ours["spec"], "spec")}
    found |= {*missing(theirs["status"], ours.get("status", {}), "status")}
    assert found <= NOT_OURS


def test_what_would_be_missed_is_found() -> None:
    (theirs,) = [each["spec"] for each in CONTRACT if each["kind"] == "LoadBalancer"]
    ours = copy.deepcopy(LOAD_BALANCER.schema["properties"]["spec"])
    assert not [*missing(theirs, ours, "spec")]
    listeners = ours["properties"]["listeners"]
    listeners["items"]["required"].remove("pool")
    listeners["items"]["properties"]["protocol"]["enum"].append("odd")
    del listeners["x-kubernetes-list-map-keys"]
    assert {*missing(theirs, ours, "spec")} == {
        "spec.listeners[].pool",
        "spec.listeners[].protocol may be ['odd']",
        "spec.listeners is not told apart by ['name']",
    }
