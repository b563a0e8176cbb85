import pytest

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import WrongState
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import Bench, handle_of_server

SERVER = handle_of_server()


@on_every_provider("consoles", "servers", "ports")
async def test_a_running_server_has_a_console_each_time_at_another_address(bench: Bench) -> None:
    consoles = bench.provider.consoles
    assert consoles is not None
    await bench.server()
    first, second = await consoles.open_console(SERVER), await consoles.open_console(SERVER)
    assert first.startswith("https://")
    assert first != second


@on_every_provider("consoles", "servers", "ports")
async def test_a_stopped_server_has_no_screen(bench: Bench) -> None:
    consoles, servers = bench.provider.consoles, bench.provider.servers
    assert consoles is not None
    assert servers is not None
    await bench.server()
    await servers.stop_server(SERVER)
    await bench.in_state(SERVER, "stopped")
    with pytest.raises(WrongState):
        await consoles.open_console(SERVER)


@on_every_provider("consoles", "servers", "ports")
async def test_the_last_lines_of_the_console_are_to_be_had(bench: Bench) -> None:
    consoles = bench.provider.consoles
    assert consoles is not None
    await bench.server()
    whole = (await consoles.console_output(SERVER)).splitlines()
    assert len(whole) > 5
    assert (await consoles.console_output(SERVER, lines=3)).splitlines() == whole[-3:]
    assert await consoles.console_output(SERVER, lines=0) == ""


@on_every_provider("consoles")
async def test_there_is_no_console_without_a_server(bench: Bench) -> None:
    consoles = bench.provider.consoles
    assert consoles is not None
    await bench.tenancy()
    for look in (consoles.open_console(SERVER), consoles.console_output(SERVER)):
        with pytest.raises(NotFound):
            await look
