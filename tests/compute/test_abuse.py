"""What is sent to compute to see it break: it is refused in the words of the API, and changes nothing."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from remuda.compute.kinds import KINDS, ComputeInstance
from remuda.operations.kinds import Operation
from remuda.region.kinds import KINDS as REGION_KINDS
from remuda.service import DocumentChecks
from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment, run_compute
from tests.kit.compute.requests import ABSENT, Tenant, at, encoded, made, settle
from tests.kit.compute.updates import wanted
from tests.kit.environment import provided_by
from tests.kit.identity.environment import Carrying, expect
from tests.kit.identity.service_credentials import certified, principal

COMPUTE_TAGS = (
    "compute.unikorn-cloud.org/instance-id",
    "compute.unikorn-cloud.org:instance-id",
    "Compute.Unikorn-Cloud.ORG/instance-id",
    "region.unikorn-cloud.org/anything",
)
NESTED = (
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b'{"spec":' * 2000 + b"{}" + b"}" * 2000,
)
MANY = [f"f0000000-0000-4000-8000-{number:012x}" for number in range(65)]
SPECS: dict[str, dict[str, Any]] = {
    "too many groups": {"networking": {"securityGroups": MANY}},
    "too many prefixes": {"networking": {"allowedSourceAddresses": ["10.0.0.0/8"] * 65}},
    "a prefix that is none": {"networking": {"allowedSourceAddresses": ["10.0.0.0/33"]}},
    "a prefix of another family": {"networking": {"allowedSourceAddresses": ["::/0"]}},
    "user data that is too long": {"userData": encoded(b"#!/bin/sh\n".ljust(64 * 1024 + 1, b"#"))},
    "user data that is not base64": {"userData": "#!/bin/sh"},
    "a number for a text": {"flavorId": 1},
    "an id with a slash": {"imageId": "../../flavors"},
    "protection that is a text": {"protection": {"deletion": "yes"}},
    "networking that is a list": {"networking": []},
}
QUERIES = (
    {"dryRun": "maybe"},
    {"dryRun": "true", "plan": "no hash"},
    {"plan": "0" * 33},
    {"plan": "../" * 10},
)
PATHS = ("..%2F..", "%2e%2e", "a" * 300, "%00", ABSENT.upper() + "x", "*")

Scenario = Callable[[ComputeEnvironment, Tenant, str], Coroutine[Any, Any, None]]


def _unmoved(scenario: Scenario) -> None:
    """Run a scenario about an instance that is at rest, and see that nothing has changed by it."""

    async def run(environment: ComputeEnvironment) -> None:
        tenant = await settle(environment)
        instance = made(await tenant.client.post(INSTANCES, tenant.wanted(environment)))
        await environment.until(instance, "provisioned")
        await environment.clock.sleep(60)
        before = _change_count(environment)
        await scenario(environment, tenant, instance)
        assert _change_count(environment) == before

    run_compute(run, is_instant=True)


compute = provided_by(_unmoved, "way")
tenant = provided_by(_unmoved, "way", position=1)
instance = provided_by(_unmoved, "way", position=2)


def _change_count(environment: ComputeEnvironment) -> int:
    return environment.store.change_counter(
        [ComputeInstance, Operation, *(kind.type for kind in (*KINDS, *REGION_KINDS))]
    )


async def test_what_no_instance_can_be_is_refused_at_create_change_and_dry_run(
    compute: ComputeEnvironment, tenant: Tenant, instance: str
) -> None:
    for what, spec in SPECS.items():
        new, change = tenant.wanted(compute, "new", **spec), wanted(tenant, compute, **spec)
        for reply in (
            await tenant.client.post(INSTANCES, new),
            await tenant.client.put(at(instance), change),
            await tenant.client.send("PUT", at(instance), query={"dryRun": "true"}, body=change),
        ):
            assert reply.status in {400, 422}, (what, reply.status)
            assert reply.json["error_description"], what


async def test_reserved_tags_are_refused_from_whoever_is_not_their_service(
    compute: ComputeEnvironment, tenant: Tenant, instance: str
) -> None:
    for name in COMPUTE_TAGS:
        metadata = {"name": "instance", "tags": [{"name": name, "value": ABSENT}]}
        for client in (tenant.client, compute.root):
            new = {**tenant.wanted(compute), "metadata": {**metadata, "name": "new"}}
            change = {**wanted(tenant, compute), "metadata": metadata}
            for reply in (await client.post(INSTANCES, new), await client.put(at(instance), change)):
                assert (reply.status, "only a service may set" in reply.json["error_description"]) == (422, True)


async def test_odd_queries_paths_and_deep_json_are_refused(
    compute: ComputeEnvironment, tenant: Tenant, instance: str
) -> None:
    for query in QUERIES:
        reply = await tenant.client.send("PUT", at(instance), query=query, body=wanted(tenant, compute))
        assert reply.status in {400, 422}, query
    for path in PATHS:
        for target in (f"{INSTANCES}/{path}", f"{INSTANCES}/{path}/start", f"{INSTANCES}/{path}/timeline"):
            reply = await tenant.client.send("POST" if target.endswith("start") else "GET", target)
            assert reply.status in {400, 404}, target
    for nested in NESTED:
        assert (await tenant.client.post(INSTANCES, nested)).status in {400, 413}
        assert (await tenant.client.put(at(instance), nested)).status in {400, 413}
        assert (await tenant.client.post(at(instance, "snapshot"), nested)).status in {400, 413}


async def test_what_is_far_too_long_is_refused_before_it_is_read(
    compute: ComputeEnvironment, tenant: Tenant, instance: str
) -> None:
    huge = tenant.wanted(compute, "new", userData=encoded(b"#" * (4 << 20)))
    assert (await tenant.client.post(INSTANCES, huge)).status == 413
    tags = [{"name": f"tag-{number}", "value": "1"} for number in range(10_000)]
    body = {**wanted(tenant, compute), "metadata": {"name": "instance", "tags": tags}}
    assert (await tenant.client.put(at(instance), body)).status in {400, 413, 422}
    many = {"metadata": {"name": "image", "tags": tags[:51]}}
    assert (await tenant.client.post(at(instance, "snapshot"), many)).status in {400, 422}


async def test_m27_user_data_whose_check_does_not_end_is_refused_and_nothing_is_changed(
    compute: ComputeEnvironment, tenant: Tenant, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = asyncio.Event()

    async def hang(_work: object) -> None:
        await never.wait()

    documents = DocumentChecks(hang)  # type: ignore[arg-type]  # it returns nothing, and never
    monkeypatch.setattr(type(compute.app.services.instances.documents), "run", documents.run)
    data = encoded("#cloud-config\nhostname: web\n")
    new = tenant.wanted(compute, "new", userData=data)
    change = wanted(tenant, compute, userData=data)
    for reply in (await tenant.client.post(INSTANCES, new), await tenant.client.put(at(instance), change)):
        assert reply.status == 503
        assert reply.json["error_description"].startswith("spec.userData could not be checked within 5 s: send")
    assert expect(await tenant.client.get(at(instance)), 200)["spec"].get("userData") is None


async def test_a_tenant_who_claims_to_act_for_somebody_else_acts_for_itself(
    compute: ComputeEnvironment, tenant: Tenant, instance: str
) -> None:
    claim = {"actor": "root@remuda.test", "type": "user", "organizationId": ABSENT, "projectId": ABSENT}
    forged = {
        "x-principal": principal(claim),
        "x-impersonate": "true",
        "ssl-client-verify": "SUCCESS",
        "ssl-client-cert": "nonsense",
    }
    alone = {name: forged[name] for name in ("x-principal", "x-impersonate")}
    ann = Client(app=Carrying(compute.asgi, alone), token=tenant.client.token)
    assert [each["metadata"]["id"] for each in expect(await ann.get(INSTANCES), 200)] == [instance]
    elsewhere = tenant.wanted(compute, "new", projectId=compute.region.project)
    assert (await ann.post(INSTANCES, elsewhere)).status == 403
    for peer, status in ((("192.0.2.1", 4711), 401), (("127.0.0.1", 4711), 400)):
        assert (await Client(app=Carrying(compute.asgi, forged), peer=peer).get(at(instance))).status == status
    vouched = certified("unikorn-compute", claim, now=compute.clock.now())
    stranger = Client(app=Carrying(compute.asgi, vouched), peer=("192.0.2.1", 4711))
    assert (await stranger.get(INSTANCES)).status == 401


@pytest.mark.parametrize("service", ["unikorn-compute", "unikorn-region", "uni-storage"])
async def test_a_service_has_no_instances_of_its_own_whoever_it_acts_for(
    compute: ComputeEnvironment, tenant: Tenant, instance: str, service: str
) -> None:
    for impersonates in (False, True):
        client = compute.service(service, impersonates=impersonates, actor="ann@example.com", type="user")
        assert (await client.post(INSTANCES, tenant.wanted(compute, "new"))).status == 403
        assert (await client.get(at(instance))).status in {403, 404}
        assert (await client.get(at(instance, "sshkey"))).status in {403, 404}
        assert (await client.delete(at(instance))).status in {403, 404}
