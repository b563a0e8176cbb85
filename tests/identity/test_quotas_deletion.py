"""What is held and was used in an organization that goes, and is gone."""

from datetime import datetime
from typing import Any

from remuda.identity.kinds.quotas import Allocation
from tests.kit.identity.environment import LOOKER, ORGANIZATIONS, IdentityEnvironment, expect

NOWHERE = "f0000000-0000-4000-8000-00000000000f"


def wanted(owner: str, servers: int = 1) -> dict[str, Any]:
    held = [{"kind": "servers", "committed": servers, "reserved": 0}]
    return {"metadata": {"name": owner}, "spec": {"kind": "instances.test", "id": owner, "allocations": held}}


async def gone(identity: IdentityEnvironment, path: str) -> None:
    async def is_gone() -> bool:
        return (await identity.client(identity.root).get(path)).status == 404

    await identity.eventually("the organization goes", is_gone)


async def test_who_wants_something_of_an_organization_that_goes_is_told_that_it_goes(
    identity: IdentityEnvironment,
) -> None:
    root = identity.client(identity.root)
    acme = await identity.organization()
    path, lab, den = f"{ORGANIZATIONS}/{acme}", await identity.project(acme), await identity.project(acme, name="den")
    rows = f"{path}/projects/{lab}/allocations"
    kept = expect(await root.post(rows, wanted("owner-1")), 201)["metadata"]["id"]
    back = expect(await root.post(rows, wanted("owner-2")), 201)["metadata"]["id"]
    expect(await root.delete(f"{rows}/{back}"), 202)
    expect(await root.delete(path), 202)
    sentence = f"The organization {acme} is being deleted and accepts no allocations: use another organization."
    for asked in (rows, f"{rows}/{back}/renew", f"{path}/projects/{den}/allocations"):
        body = None if asked.endswith("renew") else wanted("owner-3")
        refused = await root.post(asked, body)
        assert (refused.status, refused.json["code"]) in {(409, "owner_rejected"), (404, "not_found")}
        if refused.status == 409:
            assert refused.json["error_description"] == sentence
        else:
            assert den in asked, "a project that holds something stays"
    expect(await root.post(f"{rows}/{kept}/confirm"), 200)
    expect(await root.delete(f"{rows}/{kept}"), 202)
    await gone(identity, path)


async def test_an_allocation_of_nothing_keeps_its_organization_too_and_can_be_released(
    identity: IdentityEnvironment,
) -> None:
    root, acme = identity.client(identity.root), await identity.organization()
    path = f"{ORGANIZATIONS}/{acme}"
    rows = f"{path}/projects/{await identity.project(acme)}/allocations"
    kept = expect(await root.post(rows, wanted("owner-1", servers=0)), 201)["metadata"]["id"]
    expect(await root.delete(path), 202)
    await identity.clock.sleep(60)
    expect(await root.delete(f"{rows}/{kept}"), 202)
    await gone(identity, path)


async def test_nothing_was_held_yet_in_an_organization_that_goes(identity: IdentityEnvironment) -> None:
    root = identity.client(identity.root)
    acme = await identity.organization()
    path = f"{ORGANIZATIONS}/{acme}"
    lab = await identity.project(acme)
    expect(await root.put(f"{path}/projects/{lab}/references/instances.test%2Fx"), 201)
    expect(await root.delete(path), 202)
    refused = await root.post(f"{path}/projects/{lab}/allocations", wanted("owner-1"))
    assert refused.status == 409
    assert f"The organization {acme} is being deleted" in refused.json["error_description"]


async def test_what_an_organization_used_is_read_when_it_is_gone_by_those_who_may_read_that_of_all(
    identity: IdentityEnvironment,
) -> None:
    root, looker = identity.client(identity.root), identity.client(await identity.log_in(LOOKER))
    acme, other = await identity.organization(), await identity.organization("other")
    ann = identity.client(await identity.member("ann@example.com", acme, "administrator"))
    bob = identity.client(await identity.member("bob@example.com", other, "administrator"))
    path, lab = f"{ORGANIZATIONS}/{acme}", await identity.project(acme)
    rows = f"{path}/projects/{lab}/allocations"
    early, late = [expect(await root.post(rows, wanted(f"owner-{each}")), 201)["metadata"]["id"] for each in range(2)]
    expect(await root.delete(f"{rows}/{early}"), 202)
    assert {row["metadata"]["id"] for row in expect(await ann.get(f"{path}/allocations"), 200)} == {late}
    began = identity.clock.now()
    expect(await root.delete(path), 202)
    await identity.clock.sleep(60)
    expect(await root.delete(f"{rows}/{late}"), 202)
    await gone(identity, path)
    for reader in (root, looker):
        assert expect(await reader.get(f"{path}/allocations"), 200) == []
        used = expect(await reader.get(f"{path}/allocations", {"until": _plain(identity.clock.now())}), 200)
        assert {row["metadata"]["id"] for row in used} == {early, late}
        assert all(row["status"]["started"] < row["status"]["ended"] for row in used)
        since = {"kind": "servers", "since": _plain(began)}
        used = expect(await reader.get(f"{path}/allocations", since), 200)
        assert late in {row["metadata"]["id"] for row in used}
        assert (await reader.get(f"{ORGANIZATIONS}/{NOWHERE}/allocations")).status == 404
    for stranger in (ann, bob):
        assert (await stranger.get(f"{path}/allocations")).status in {401, 403}
    assert (await root.post(f"{rows}/{late}/renew")).status == 404
    assert (await identity.store.get(Allocation, late)).spec.state == "released"


def _plain(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
