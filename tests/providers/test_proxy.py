"""A provider behind its calls: everything passes, under its own key, and only reads are tried again."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from remuda.kernel.errors import NotFound, OutcomeUnknown, TimedOut, Unavailable
from remuda.providers.calls import Calls
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import Provider
from remuda.providers.proxy import CALLS, UPLOAD_S, Listing, Rule, methods_of, proxied
from tests.kit.environment import provided_by
from tests.kit.providers.echo import PARTS, Echo
from tests.kit.providers.protocols import is_protocol, protocol_of
from tests.kit.providers.slow_provider import NEVER_BREAKS
from tests.kit.simulation.runner import World, simulate

HANDLE = Handle("identity-a.u", "thing-b.v")
SPEC: Any = SimpleNamespace(handle=HANDLE, name=HANDLE.name, id="i")
CONTENT: Any = object()
PROTOCOLS: dict[str, Any] = {
    name: protocol_of(name) for name in get_type_hints(Provider) if is_protocol(protocol_of(name)) and name != "events"
}


@dataclass(frozen=True)
class Asked:
    """A way to ask something of a provider."""

    capability: str
    verb: str
    given: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()
    key: str = HANDLE.name

    async def of(self, provider: Provider) -> Any:
        return await getattr(getattr(provider, self.capability), self.verb)(*self.given, **dict(self.named))


EFFECTS = [
    Asked("images", "create_image", (SPEC, CONTENT), key="image-i"),
    Asked("images", "remove_image", ("i",), key="image-i"),
    Asked("tenancies", "converge_tenancy", (SPEC,)),
    Asked("tenancies", "remove_tenancy", (HANDLE.name,)),
    Asked("networks", "converge_network", (SPEC,)),
    Asked("networks", "remove_network", (HANDLE,)),
    Asked("security_groups", "converge_group", (SPEC,)),
    Asked("security_groups", "remove_group", (HANDLE,)),
    Asked("ports", "converge_port", (SPEC,)),
    Asked("ports", "remove_port", (HANDLE,)),
    Asked("servers", "create_server", (SPEC,)),
    Asked("servers", "remove_server", (HANDLE,)),
    Asked("servers", "start_server", (HANDLE,)),
    Asked("servers", "stop_server", (HANDLE,)),
    Asked("servers", "reboot_server", (HANDLE,), (("hard", True),)),
    Asked("servers", "rebuild_server", (HANDLE, "image", b"data")),
    Asked("snapshots", "snapshot_server", (HANDLE, SPEC), key="image-i"),
    Asked("load_balancers", "converge_balancer", (SPEC,)),
    Asked("load_balancers", "remove_balancer", (HANDLE,)),
    Asked("file_storages", "converge_storage", (SPEC,)),
    Asked("file_storages", "remove_storage", (HANDLE,)),
]
READS = [
    Asked("catalogue", "flavors"),
    Asked("external_networks", "external_networks"),
    Asked("images", "images"),
    Asked("images", "find_image", ("i",)),
    Asked("tenancies", "find_tenancy", (HANDLE.name,)),
    Asked("networks", "find_network", (HANDLE,)),
    Asked("security_groups", "find_group", (HANDLE,)),
    Asked("ports", "find_port", (HANDLE,)),
    Asked("servers", "find_server", (HANDLE,)),
    Asked("consoles", "open_console", (HANDLE,), (("viewer", "ann"),)),
    Asked("consoles", "console_output", (HANDLE,), (("lines", 5),)),
    Asked("load_balancers", "find_balancer", (HANDLE,)),
    Asked("file_storages", "storage_classes"),
    Asked("file_storages", "find_storage", (HANDLE,)),
]
LISTINGS = [
    Asked("tenancies", "tenancies"),
    Asked("networks", "networks"),
    Asked("security_groups", "groups"),
    Asked("ports", "ports"),
    Asked("servers", "server_versions"),
    Asked("load_balancers", "balancers"),
    Asked("file_storages", "storages"),
]


RULES = [(name, rule) for name, rules in CALLS.items() for rule in rules]


def _verb(asked: Asked) -> str:
    return asked.verb


def with_echo(act: Callable[[Echo, Provider, Calls], Awaitable[None]]) -> None:
    async def scenario(world: World) -> None:
        echo = Echo(world)
        calls = Calls(
            "echo",
            methods_of(echo.provider),
            clock=world.clock,
            randomness=world.randomness,
            settings=CallSettings(breaker=NEVER_BREAKS, deadline_s=30, retries=3),
        )
        await act(echo, proxied(echo.provider, calls), calls)

    simulate(scenario, 3)


echo = provided_by(with_echo)
provider = provided_by(with_echo, position=1)
calls = provided_by(with_echo, position=2)


def _listed(provider: Provider, asked: Asked) -> AsyncIterator[Any]:
    parts: AsyncIterator[Any] = getattr(getattr(provider, asked.capability), asked.verb)()
    return parts


def test_every_method_of_every_capability_is_in_the_tables() -> None:
    promised = {
        (name, method)
        for name, protocol in PROTOCOLS.items()
        for method in vars(protocol)
        if not method.startswith("_")
    }
    assert {(each.capability, each.verb) for each in (*EFFECTS, *READS, *LISTINGS)} == promised
    assert {(name, rule.method) for name, rules in CALLS.items() for rule in rules} == promised
    assert set(CALLS) == {*PROTOCOLS, "events"}


@pytest.mark.parametrize(("name", "rule"), RULES, ids=lambda each: getattr(each, "method", each))
def test_the_rule_of_a_method_fits_its_signature(name: str, rule: Rule) -> None:
    method = getattr(PROTOCOLS[name], rule.method)
    assert isinstance(rule, Listing) == (not inspect.iscoroutinefunction(method))
    _, *parameters = inspect.signature(method).parameters.values()
    if isinstance(rule, Listing):
        assert not parameters
        return
    key = inspect.signature(rule.key)
    in_order = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    by_name = {each.name: each.name for each in parameters}
    for bound in (key.bind(*in_order), key.bind(**by_name)):  # a caller may name what it passes
        assert all(parameter == value for parameter, value in bound.arguments.items() if parameter not in {"_", "__"})


async def test_a_provider_keeps_its_type_and_what_it_lacks_and_is_listened_to_directly(
    echo: Echo, provider: Provider, calls: Calls
) -> None:
    assert provider.capabilities == echo.provider.capabilities
    assert provider.events is echo.provider.events
    bare: Any = echo
    small = Provider(type="kubernetes", catalogue=bare)
    assert proxied(small, calls).capabilities == ("catalogue",)
    assert (proxied(small, calls).type, methods_of(small)) == ("kubernetes", ("flavors",))


@pytest.mark.parametrize("asked", [*EFFECTS, *READS], ids=_verb)
async def test_a_call_passes_with_all_that_it_says(echo: Echo, provider: Provider, asked: Asked) -> None:
    assert await asked.of(provider) == f"{asked.verb} is done"
    assert echo.asked == [(asked.verb, asked.given, dict(asked.named))]


@pytest.mark.parametrize("asked", READS, ids=_verb)
async def test_a_read_is_repeated_when_the_provider_is_ill_and_passes_while_its_key_is_unknown(
    echo: Echo, provider: Provider, asked: Asked
) -> None:
    echo.errors = [Unavailable("ill")]
    assert await asked.of(provider) == f"{asked.verb} is done"
    assert len(echo.asked) == 2
    echo.errors = [NotFound("thing", "b")]
    with pytest.raises(NotFound):
        await asked.of(provider)
    assert len(echo.asked) == 3


@pytest.mark.parametrize("asked", EFFECTS, ids=_verb)
async def test_an_effect_is_made_once_and_its_error_is_the_providers_own(
    echo: Echo, provider: Provider, asked: Asked
) -> None:
    error = Unavailable("ill")
    echo.errors = [error]
    with pytest.raises(Unavailable) as caught:
        await asked.of(provider)
    assert caught.value is error
    assert len(echo.asked) == 1


@pytest.mark.parametrize("asked", EFFECTS, ids=_verb)
async def test_an_effect_that_does_not_end_is_unknown_by_its_key_until_it_has(
    echo: Echo, provider: Provider, calls: Calls, asked: Asked
) -> None:
    echo.takes_s = UPLOAD_S + 100
    with pytest.raises(OutcomeUnknown):
        await asked.of(provider)
    assert calls.is_unknown(asked.key)
    with pytest.raises(Unavailable, match="is still running"):
        await asked.of(provider)
    assert len(echo.asked) == 1
    await echo.world.clock.sleep(UPLOAD_S + 200)
    assert not calls.is_unknown(asked.key)


async def test_a_server_and_its_port_do_not_wait_for_each_other(echo: Echo, provider: Provider) -> None:
    echo.takes_s = 1
    server, port = Handle("t", "server-a.u.0"), Handle("t", "port-a.u")
    assert provider.servers is not None
    assert provider.ports is not None
    await asyncio.gather(provider.servers.remove_server(server), provider.ports.remove_port(port))
    assert {verb for verb, _, _ in echo.asked} == {"remove_server", "remove_port"}


@pytest.mark.parametrize("asked", LISTINGS, ids=_verb)
async def test_a_listing_comes_in_its_parts(echo: Echo, provider: Provider, asked: Asked) -> None:
    assert [part async for part in _listed(provider, asked)] == list(PARTS)
    assert [(verb, given) for verb, given, _ in echo.asked] == [(asked.verb, (0,)), (asked.verb, (1,))]


@pytest.mark.parametrize("asked", LISTINGS, ids=_verb)
async def test_the_beginning_of_a_listing_is_asked_for_again(echo: Echo, provider: Provider, asked: Asked) -> None:
    echo.breaks_after, echo.errors = 0, [Unavailable("ill")]
    assert [part async for part in _listed(provider, asked)] == list(PARTS)


@pytest.mark.parametrize("error", [Unavailable("ill"), NotFound("marker", "m")])
async def test_a_listing_that_breaks_off_says_so_and_never_looks_like_the_whole(
    echo: Echo, provider: Provider, error: Exception
) -> None:
    echo.breaks_after, echo.errors = 1, [error]
    parts = _listed(provider, LISTINGS[0])
    assert await anext(parts) == PARTS[0]
    with pytest.raises(type(error)):
        await anext(parts)
    assert len(echo.asked) == 2


async def test_a_part_that_does_not_come_ends_the_listing_with_time_out(
    echo: Echo, provider: Provider, calls: Calls
) -> None:
    echo.takes_s = 100
    with pytest.raises(TimedOut):
        await anext(_listed(provider, LISTINGS[0]))
    await calls.close(grace_s=1000)


async def test_who_stops_listing_leaves_nothing_open(echo: Echo, provider: Provider) -> None:
    parts: Any = _listed(provider, LISTINGS[0])
    assert await anext(parts) == PARTS[0]
    await parts.aclose()
    assert len(echo.asked) == 1


async def test_only_an_upload_may_take_longer_than_the_deadline_of_all_calls(echo: Echo, provider: Provider) -> None:
    echo.takes_s = UPLOAD_S - 1
    late = []
    for asked in EFFECTS:
        try:
            await asked.of(provider)
        except OutcomeUnknown:
            late.append(asked.verb)
        await echo.world.clock.sleep(UPLOAD_S)
    assert late == [asked.verb for asked in EFFECTS if asked.verb != "create_image"]
