from dataclasses import replace
from ipaddress import ip_address

import pytest

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.common import Handle, InUse, Rejected, balancer_name
from remuda.providers.contract.loadbalancers import (
    CloudHealthCheck,
    CloudListener,
    CloudLoadBalancer,
    CloudLoadBalancerSpec,
    CloudMember,
)
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import NETWORK, TENANCY, Bench, everything, port_spec

BALANCER = Handle(TENANCY, balancer_name("f0000000-0000-4000-8000-000000000001", "uid-5"))
WEB = CloudListener(
    name="web",
    protocol="tcp",
    port=80,
    allowed_prefixes=("192.0.2.0/24",),
    idle_timeout_s=60,
    members=(CloudMember(address="10.1.0.21", port=8080),),
    health_check=CloudHealthCheck(),
)
WANTED = CloudLoadBalancerSpec(
    handle=BALANCER, network=NETWORK.name, address="10.1.0.200", mac="02:00:0a:01:00:c8", listeners=(WEB,)
)


async def active(bench: Bench, wanted: CloudLoadBalancerSpec) -> CloudLoadBalancer:
    """Converge until nothing is left to do, as a controller does."""
    balancers = bench.provider.load_balancers
    assert balancers is not None

    async def look() -> CloudLoadBalancer | None:
        found = await balancers.find_balancer(BALANCER)
        if found is None or found.spec != wanted:
            await balancers.converge_balancer(wanted)
            return None
        return found if found.state == "active" else None

    return await bench.until(look)


async def removed(bench: Bench) -> None:
    balancers = bench.provider.load_balancers
    assert balancers is not None

    async def look() -> bool:
        await balancers.remove_balancer(BALANCER)
        return await balancers.find_balancer(BALANCER) is None

    await bench.until(look)


@on_every_provider("load_balancers", "networks")
async def test_a_load_balancer_becomes_active_at_the_address_that_we_chose(bench: Bench) -> None:
    balancers = bench.provider.load_balancers
    assert balancers is not None
    with pytest.raises(NotFound):
        await balancers.converge_balancer(WANTED)
    await bench.network()
    assert await balancers.find_balancer(BALANCER) is None
    begun = await balancers.converge_balancer(WANTED)
    assert begun.spec == WANTED
    assert begun.state in {"building", "active"}
    made = await active(bench, WANTED)
    assert made == CloudLoadBalancer(spec=WANTED, state="active")
    assert await balancers.converge_balancer(WANTED) == made
    assert await everything(balancers.balancers()) == [BALANCER]


@on_every_provider("load_balancers", "networks")
async def test_listeners_and_the_public_address_change_and_its_own_address_stays(bench: Bench) -> None:
    balancers = bench.provider.load_balancers
    assert balancers is not None
    await bench.network()
    await balancers.converge_balancer(WANTED)
    wanted = replace(WANTED, is_public=True, listeners=(CloudListener(name="dns", protocol="udp", port=53), WEB))
    await active(bench, WANTED)
    public = await active(bench, wanted)
    assert ip_address(public.public_address)
    with pytest.raises(Rejected):
        await balancers.converge_balancer(replace(wanted, address="10.1.0.201"))
    assert (await active(bench, WANTED)).public_address == ""


@on_every_provider("load_balancers", "networks", "ports")
async def test_its_address_is_given_to_nobody_else_and_its_network_stays(bench: Bench) -> None:
    balancers, ports, networks = bench.provider.load_balancers, bench.provider.ports, bench.provider.networks
    assert balancers is not None
    assert ports is not None
    assert networks is not None
    await bench.network()
    await balancers.converge_balancer(WANTED)
    with pytest.raises(AlreadyExists):
        await ports.converge_port(port_spec(address=WANTED.address))
    with pytest.raises(InUse):
        await networks.remove_network(NETWORK)
    await removed(bench)
    await balancers.remove_balancer(BALANCER)
    await networks.remove_network(NETWORK)
