from dataclasses import replace
from ipaddress import ip_address

import pytest

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.common import InUse, Rejected
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import Bench, everything, handle_of_port, port_spec


@on_every_provider("ports")
async def test_a_port_is_made_once_with_the_address_that_we_chose(bench: Bench) -> None:
    ports = bench.provider.ports
    assert ports is not None
    assert await ports.find_port(handle_of_port()) is None
    made = await bench.port()
    assert made.spec == port_spec()
    assert made.public_address == ""
    assert made.server == ""
    assert await ports.converge_port(port_spec()) == made
    assert await everything(ports.ports()) == [made]


@on_every_provider("ports")
async def test_an_address_of_a_network_is_given_once(bench: Bench) -> None:
    ports = bench.provider.ports
    assert ports is not None
    first = await bench.port(1)
    with pytest.raises(AlreadyExists):
        await ports.converge_port(port_spec(2, address=first.spec.address))
    assert await ports.find_port(handle_of_port(2)) is None
    await ports.remove_port(handle_of_port(1))
    second = await ports.converge_port(port_spec(2, address=first.spec.address))
    assert second.spec.address == first.spec.address


@on_every_provider("ports")
async def test_a_port_needs_a_network_that_has_its_address(bench: Bench) -> None:
    ports = bench.provider.ports
    assert ports is not None
    await bench.tenancy()
    with pytest.raises(NotFound):
        await ports.converge_port(port_spec())
    await bench.network()
    with pytest.raises(Rejected):
        await ports.converge_port(port_spec(address="192.0.2.1"))
    with pytest.raises(NotFound):
        await ports.converge_port(replace(port_spec(), groups=("securitygroup-none.uid",)))
    assert await ports.find_port(handle_of_port()) is None


@on_every_provider("ports")
async def test_sources_and_the_public_address_of_a_port_change_and_its_own_address_stays(bench: Bench) -> None:
    ports = bench.provider.ports
    assert ports is not None
    await bench.port()
    wanted = replace(port_spec(), sources=("192.0.2.0/24",), is_public=True)
    public = await ports.converge_port(wanted)
    assert public.spec == wanted
    assert ip_address(public.public_address)
    assert await ports.converge_port(wanted) == public, "the public address stays"
    with pytest.raises(Rejected):
        await ports.converge_port(replace(wanted, address="10.1.0.99"))
    private = await ports.converge_port(port_spec())
    assert private.public_address == ""


@on_every_provider("ports")
async def test_no_two_ports_have_the_same_public_address(bench: Bench) -> None:
    ports = bench.provider.ports
    assert ports is not None
    made = [await bench.port(number, is_public=True) for number in range(1, 6)]
    assert len({port.public_address for port in made}) == 5
    for port in made:
        await ports.remove_port(port.spec.handle)
        await ports.remove_port(port.spec.handle)
    assert await everything(ports.ports()) == []


@on_every_provider("ports", "servers")
async def test_a_port_stays_while_a_server_stands_behind_it(bench: Bench) -> None:
    ports, servers = bench.provider.ports, bench.provider.servers
    assert ports is not None
    assert servers is not None
    server = await bench.server()
    found = await ports.find_port(handle_of_port())
    assert found is not None
    assert found.server == server.handle.name
    with pytest.raises(InUse):
        await ports.remove_port(handle_of_port())
    await servers.remove_server(server.handle)
    await bench.gone(server.handle)
    await ports.remove_port(handle_of_port())
    assert await ports.find_port(handle_of_port()) is None
