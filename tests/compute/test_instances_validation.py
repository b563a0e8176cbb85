"""How region is asked while an instance is validated, and what becomes of it if the network goes meanwhile."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from remuda.access.principal import Context
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import RegionClient
from remuda.operations.kinds import Operation
from remuda.region.api import RegionApi
from remuda.service import DocumentChecks
from tests.kit.compute.environment import INSTANCES, SERVICE, ComputeEnvironment
from tests.kit.compute.instance_values import USER_DATA
from tests.kit.compute.requests import held, made, make_authority, make_group, settle
from tests.kit.resource_api import rejection


class Overheard:
    """Region, with an ear on who asks for what; `meddle` is called before the images are asked for."""

    def __init__(self, region: Any, meddle: Callable[[], Awaitable[None]] | None = None) -> None:
        self._region, self._meddle = region, meddle
        self.asked: list[tuple[str, Context]] = []

    def __getattr__(self, name: str) -> Any:
        ask = getattr(self._region, name)

        async def overhear(*args: Any, **named: Any) -> Any:
            if args[0].impersonated is not None:
                self.asked.append((name, args[0]))
            if name == "list_images" and self._meddle is not None:
                await self._meddle()
            return await ask(*args, **named)

        return overhear


def _put_between(compute: ComputeEnvironment, meddle: Callable[[], Awaitable[None]] | None = None) -> Overheard:
    instances = compute.app.services.instances
    overheard = Overheard(instances.region.api, meddle)
    object.__setattr__(instances, "region", RegionClient(cast("RegionApi", overheard), instances.region.caller))
    return overheard


async def test_m03_region_is_asked_as_the_caller_in_the_claimed_project(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    group, authority = await make_group(compute, tenant.network), await make_authority(compute, tenant.project)
    overheard = _put_between(compute)
    wanted = tenant.wanted(compute, networking={"securityGroups": [group]}, sshCertificateAuthorityId=authority)
    made(await tenant.client.post(INSTANCES, wanted))
    assert [name for name, _ in overheard.asked] == [
        "get_network",
        "list_flavors",
        "list_images",
        "get_security_group",
        "get_ssh_certificate_authority",
    ]
    for _, context in overheard.asked:
        caller, principal = context.impersonated, context.principal
        assert caller is not None
        assert (caller.subject, caller.type) == ("ann@example.com", "user")
        assert (principal.service, principal.actor) == (SERVICE, "ann@example.com")
        for each in (caller, principal):
            assert (each.organization, each.project) == (compute.region.organization, tenant.project)


async def test_m18_an_instance_whose_network_was_marked_while_it_was_validated_is_rolled_back(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)

    async def mark() -> None:
        assert (await compute.region.root.delete(f"/api/v2/networks/{tenant.network}")).status == 202

    _put_between(compute, mark)
    refused = rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    assert refused == (400, "network is being deleted")
    assert not (await compute.store.list(ComputeInstance)).items
    assert await held(compute) == []
    operations = (await compute.store.list(Operation)).items
    (operation,) = [each for each in operations if each.spec.saga == "instance.create"]
    assert (operation.phase, operation.status.failed_step) == ("undone", "recheck-network")
    await compute.region.until_gone(f"/api/v2/networks/{tenant.network}")


async def test_a_refused_request_has_no_operation(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    before = len((await compute.store.list(Operation)).items)
    assert (await tenant.client.post(INSTANCES, tenant.wanted(compute, userData="%"))).status == 400
    assert len((await compute.store.list(Operation)).items) == before


async def test_user_data_is_checked_off_the_event_loop(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instances, servers = compute.app.services.instances, compute.region.app.services.servers
    checked: list[str] = []

    def counted(service: str) -> Any:
        async def run_blocking(work: Callable[[], Any]) -> Any:
            checked.append(service)
            return work()

        return run_blocking

    object.__setattr__(instances, "documents", DocumentChecks(counted("compute")))
    object.__setattr__(servers, "documents", DocumentChecks(counted("region")))
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=USER_DATA)))
    await compute.until(instance, "provisioned")
    assert checked == ["compute", "region"]
