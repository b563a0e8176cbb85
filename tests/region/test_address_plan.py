"""How a network's addresses are divided, and which of them a server gets."""

from ipaddress import IPv4Address, IPv4Network
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.errors import Invalid
from remuda.region.networks.address_plan import (
    DEFAULT_RESERVATIONS,
    AddressPlan,
    Ipv4Range,
    ReservedLengths,
    address_plan,
    free_address,
    mac_of,
    parse_network_prefix,
    probe_order,
)

NETWORK = IPv4Network("10.0.0.0/24")


def between(first: str, last: str) -> Ipv4Range:
    return Ipv4Range(IPv4Address(first), IPv4Address(last))


PLANS = [
    (
        *("10.0.0.0/24", None, "10.0.0.1"),
        *(between("10.0.0.0", "10.0.0.15"), between("10.0.0.16", "10.0.0.127"), between("10.0.0.128", "10.0.0.254")),
    ),
    (
        *("10.0.0.0/16", None, "10.0.0.1"),
        *(between("10.0.0.0", "10.0.0.15"), between("10.0.0.16", "10.0.0.127"), between("10.0.0.128", "10.0.255.254")),
    ),
    (
        *("192.168.4.0/22", ReservedLengths(24, 26), "192.168.4.1"),
        between("192.168.4.0", "192.168.4.63"),
        *(between("192.168.4.64", "192.168.4.255"), between("192.168.5.0", "192.168.7.254")),
    ),
    (
        *("10.0.0.0/24", ReservedLengths(26), "10.0.0.1"),
        *(between("10.0.0.0", "10.0.0.1"), between("10.0.0.2", "10.0.0.63"), between("10.0.0.64", "10.0.0.254")),
    ),
    (
        *("10.0.0.0/24", ReservedLengths(28, 28), "10.0.0.1"),
        *(between("10.0.0.0", "10.0.0.15"), None, between("10.0.0.16", "10.0.0.254")),
    ),
    (
        *("10.0.0.0/24", ReservedLengths(30), "10.0.0.1"),
        *(between("10.0.0.0", "10.0.0.1"), between("10.0.0.2", "10.0.0.3"), between("10.0.0.4", "10.0.0.254")),
    ),
    (
        *("0.0.0.0/0", ReservedLengths(1), "0.0.0.1"),
        *(between("0.0.0.0", "0.0.0.1"), between("0.0.0.2", "127.255.255.255")),
        between("128.0.0.0", "255.255.255.254"),
    ),
]


@pytest.mark.parametrize(("prefix", "reservations", "gateway", "provider", "storage", "pool"), PLANS)
def test_a_network_is_divided_by_its_reservations(
    prefix: str,
    reservations: ReservedLengths | None,
    gateway: str,
    provider: Ipv4Range,
    storage: Ipv4Range | None,
    pool: Ipv4Range,
) -> None:
    plan = address_plan(parse_network_prefix(prefix), reservations)
    assert str(plan.gateway) == gateway
    assert (plan.provider_range, plan.storage_range, plan.dhcp_pool) == (provider, storage, pool)


def test_the_default_is_in_effect_where_nothing_is_reserved() -> None:
    assert address_plan(NETWORK).reservations == DEFAULT_RESERVATIONS == ReservedLengths(length=25, provider_length=28)


@st.composite
def plans(draw: st.DrawFn) -> AddressPlan:
    mask = draw(st.integers(0, 24))
    base = draw(st.integers(0, 2**32 - 1))
    length = draw(st.integers(mask + 1, 30))
    provider = draw(st.none() | st.integers(length, 30))
    return address_plan(IPv4Network((base, mask), strict=False), ReservedLengths(length, provider))


@given(plans())
def test_the_parts_follow_one_another_and_leave_only_the_broadcast_address_over(plan: AddressPlan) -> None:
    parts = [part for part in (plan.provider_range, plan.storage_range, plan.dhcp_pool) if part]
    assert parts[0].first == plan.network.network_address
    for before, after in pairwise(parts):
        assert before.last + 1 == after.first
    assert parts[-1].last + 1 == plan.network.broadcast_address
    assert plan.gateway in plan.provider_range
    assert all(len(part) > 0 for part in parts)


@pytest.mark.parametrize(
    ("reservations", "sentence"),
    [
        (
            ReservedLengths(24, 28),
            "the address reservation prefix length must be greater than the network prefix length",
        ),
        (ReservedLengths(0), "the address reservation prefix length must be greater than the network prefix length"),
        (
            ReservedLengths(26, 25),
            "the provider reserved prefix length must be greater than or equal to the reservation prefix length",
        ),
        (
            ReservedLengths(26, 0),
            "the provider reserved prefix length must be greater than or equal to the reservation prefix length",
        ),
    ],
)
def test_reservations_that_do_not_fit_are_refused(reservations: ReservedLengths, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        address_plan(NETWORK, reservations)
    assert refused.value.message == sentence


def test_a_range_counts_and_contains() -> None:
    span = between("10.0.0.16", "10.0.0.19")
    assert len(span) == 4
    assert [str(address) for address in span] == ["10.0.0.16", "10.0.0.17", "10.0.0.18", "10.0.0.19"]
    assert (span.first in span, span.last in span) == (True, True)
    assert (IPv4Address("10.0.0.15") in span, IPv4Address("10.0.0.20") in span) == (False, False)
    for place in (-1, 4):
        with pytest.raises(IndexError):
            span[place]


@given(uid=st.text(max_size=40))
def test_probing_visits_every_address_of_the_pool_once(uid: str) -> None:
    pool = address_plan(NETWORK).dhcp_pool
    visited = list(probe_order(pool, uid))
    assert visited == list(probe_order(pool, uid))
    assert sorted(visited) == list(pool)


def test_servers_made_at_once_begin_in_different_places() -> None:
    pool = address_plan(IPv4Network("10.0.0.0/16")).dhcp_pool
    starts = {next(probe_order(pool, f"uid-{number}")) for number in range(1000)}
    assert len(starts) > 950


def test_probing_starts_at_once_however_large_the_pool_is() -> None:
    pool = address_plan(IPv4Network("0.0.0.0/0"), ReservedLengths(2)).dhcp_pool
    assert len(set(islice(probe_order(pool, "uid"), 8))) == 8


@given(uid=st.text(max_size=40), used=st.sets(st.integers(0, 126)))
def test_a_free_address_is_found_while_there_is_one(uid: str, used: set[int]) -> None:
    pool = address_plan(NETWORK).dhcp_pool
    taken = {pool[place] for place in used}
    found = free_address(pool, uid, taken)
    if found is None:
        assert taken == set(pool)
    else:
        assert found in pool
        assert found not in taken


def test_a_full_pool_has_no_free_address() -> None:
    pool = address_plan(NETWORK).dhcp_pool
    assert free_address(pool, "uid", list(pool)) is None


def test_a_mac_is_local_unicast_and_ends_in_the_address() -> None:
    mac = mac_of("c0ffee00-0000-4000-8000-000000000000", IPv4Address("10.1.2.200"))
    assert mac == mac_of("c0ffee00-0000-4000-8000-000000000000", IPv4Address("10.1.2.200"))
    assert (mac[:3], mac[5:]) == ("02:", ":0a:01:02:c8")
    others = {mac_of(f"network-{number}", IPv4Address("10.1.2.200"))[3:5] for number in range(50)}
    assert len(others) > 25
