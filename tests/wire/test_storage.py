"""Objects of existing clusters can be read by us, and ours by whoever reads those: the stored kinds hold the contract.

What we have besides is our own affair. A quantity there is an integer or a text (`x-kubernetes-int-or-string`) and an
integer here: that is how whole numbers are written in either.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remuda.compute.kinds import KINDS as COMPUTE_KINDS
from remuda.identity.kinds import KINDS as IDENTITY_KINDS
from remuda.region.kinds import KINDS as REGION_KINDS
from remuda.region.kinds import legacy
from remuda.store.kinds import Registry
from remuda.store.kubernetes.kinds import definitions

CONTRACT = json.loads((Path(__file__).parent / "storage.json").read_text())
ALLOWED = {"spec.privateKeys[] demands ['pem']"}
"""A key pair without its key is of no use to anybody."""
MORE = {legacy.OPENSTACK_NETWORK.name, legacy.OPENSTACK_SECURITY_GROUP.name, legacy.OPENSTACK_SERVER.name}
"""Kinds of existing clusters that the contract leaves out, since they are about to go there, too."""
DEFINED = [each["spec"] for each in definitions(Registry([*IDENTITY_KINDS, *REGION_KINDS, *COMPUTE_KINDS]))]
OURS = {each["names"]["kind"]: each for each in DEFINED}


def differences(theirs: Any, ours: Any, place: str) -> Iterator[str]:
    """Return where an object of theirs would not be one of ours."""
    if not theirs:
        return  # nothing is said about it
    if not _types(ours) <= _types(theirs):
        yield f"{place} is {sorted(_types(ours))}, not {sorted(_types(theirs))}"
    if refused := set(theirs.get("enum", ())) - set(ours.get("enum", theirs.get("enum", ()))):
        yield f"{place} rejects {sorted(refused)}"
    if demanded := set(ours.get("required", ())) - set(theirs.get("required", ())):
        yield f"{place} demands {sorted(demanded)}"
    for name, field in theirs.get("properties", {}).items():
        if name not in ours.get("properties", {}):
            yield f"{place} has no {name}"
        else:
            yield from differences(field, ours["properties"][name], f"{place}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(theirs.get(inner), dict):
            yield from differences(theirs[inner], ours.get(inner, {}), f"{place}[]")


def _types(schema: Any) -> set[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return {"integer", "string"}
    return {schema["type"]} if "type" in schema else {"anything"}


@pytest.mark.parametrize("theirs", CONTRACT, ids=lambda theirs: theirs["kind"])
def test_a_stored_kind_is_that_of_existing_clusters(theirs: Any) -> None:
    ours = OURS[theirs["kind"]]
    (version,) = ours["versions"]
    assert (ours["group"], version["name"], ours["names"]["plural"], ours["scope"]) == (
        theirs["group"],
        theirs["version"],
        theirs["plural"],
        theirs["scope"],
    )
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert not {*differences(theirs["spec"], properties["spec"], "spec")} - ALLOWED
    assert not [*differences(theirs["status"], properties.get("status", {"type": "object"}), "status")]


def test_every_kind_of_their_groups_is_in_the_contract() -> None:
    groups = {each["group"] for each in CONTRACT}
    assert groups == {f"{service}.unikorn-cloud.org" for service in ("identity", "region", "compute")}
    shared = {name for name, spec in OURS.items() if spec["group"] in groups}
    assert shared - MORE == {each["kind"] for each in CONTRACT}


def test_no_two_kinds_have_one_name() -> None:
    assert len(OURS) == len(DEFINED)


FLAWS = {
    "spec has no domain": lambda spec: spec["properties"].pop("domain"),
    "spec.pause is ['string'], not ['boolean']": lambda spec: spec["properties"]["pause"].update(type="string"),
    "spec demands ['domain']": lambda spec: spec["required"].append("domain"),
    "spec.tags[] has no value": lambda spec: spec["properties"]["tags"]["items"]["properties"].pop("value"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_what_does_not_fit_is_found(flaw: str) -> None:
    (theirs,) = [each["spec"] for each in CONTRACT if each["kind"] == "Organization"]
    ours = copy.deepcopy(OURS["Organization"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    assert not [*differences(theirs, ours, "spec")]
    FLAWS[flaw](ours)
    assert [*differences(theirs, ours, "spec")] == [flaw]
