"""Reading IPv4 addresses and prefixes as clients write them."""

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.errors import Invalid, Malformed
from remuda.region.networks.address_plan import (
    address_plan,
    parse_nameserver,
    parse_network_prefix,
    parse_next_hop,
    parse_route_prefix,
    parse_vip,
)
from remuda.resources.ipv4 import find_address, find_prefix, is_ipv6

NETWORK = IPv4Network("10.0.0.0/24")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.0.0.0/16", "10.0.0.0/16"),
        ("10.0.7.9/16", "10.0.0.0/16"),
        ("192.168.1.255/24", "192.168.1.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ],
)
def test_a_prefix_loses_its_host_bits(text: str, canonical: str) -> None:
    assert str(parse_network_prefix(text)) == canonical


NO_PREFIXES = [
    *("", "nonsense", "10.0.0.0", "10.0.0.0/", "/24", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/ 24", " 10.0.0.0/24"),
    *("10.0.0/24", "10.0.0.0.0/24", "10.0.0.256/24", "010.0.0.0/24", "0x0a.0.0.0/8", "167772160/8"),
    *(
        "10.0.0.0/255.255.255.0",
        "10.0.0.0/0.0.0.255",
        "10.0.0.0/024",
        "10.0.0.0/\u0662\u0664",
        "\u0661\u0660.0.0.0/24",
        "10.0.0.0/24\n",
    ),
]


@pytest.mark.parametrize("text", NO_PREFIXES)
def test_what_is_no_prefix_is_refused(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_network_prefix(text)
    assert refused.value.message == "unable to parse IPv4 prefix"
    with pytest.raises(Malformed) as refused:
        parse_route_prefix(text)
    assert refused.value.message == "failed to parse route prefix"


@pytest.mark.parametrize("text", ["10.0.0.0/25", "10.0.0.0/32"])
def test_a_network_smaller_than_256_addresses_is_refused(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_network_prefix(text)
    assert refused.value.message == "minimum network prefix size is /24"
    assert str(parse_route_prefix(text)) == text, "a route may lead to one machine"


@pytest.mark.parametrize("text", ["fd00::/8", "2001:db8::/64", "::/0", "::ffff:10.0.0.0/104"])
def test_ipv6_is_refused_by_name(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_network_prefix(text)
    assert refused.value.message == "unable to parse IPv4 prefix, IPv6 is not supported"
    with pytest.raises(Malformed) as refused:
        parse_nameserver(text.split("/", maxsplit=1)[0])
    assert refused.value.message == "unable to parse IPv4 address, IPv6 is not supported"


NO_ADDRESSES = [
    "",
    "10.0.0",
    "10.0.0.0/32",
    "10.0.0.01",
    "0x7f000001",
    "2130706433",
    "host",
    "10.0.0.1 ",
    "\uff110.0.0.1",
]


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_what_is_no_address_is_refused(text: str) -> None:
    for read, sentence in (
        (parse_nameserver, "unable to parse IPv4 address"),
        (parse_next_hop, "failed to parse route next-hop"),
        (lambda text: parse_vip(text, address_plan(NETWORK)), "vipAddress must be a valid IPv4 address"),
    ):
        with pytest.raises(Malformed) as refused:
            read(text)
        assert refused.value.message == sentence


def test_an_address_is_read() -> None:
    assert parse_nameserver("8.8.8.8") == parse_next_hop("8.8.8.8") == IPv4Address("8.8.8.8")


def test_a_vip_is_inside_the_network_and_nobody_elses_by_nature() -> None:
    plan = address_plan(NETWORK)
    assert parse_vip("10.0.0.128", plan) == IPv4Address("10.0.0.128")
    assert parse_vip("10.0.0.254", plan) == IPv4Address("10.0.0.254")
    for outside in ("10.0.1.0", "9.255.255.255"):
        with pytest.raises(Invalid) as refused:
            parse_vip(outside, plan)
        assert refused.value.message == "vipAddress must be within the selected network CIDR"
    for nobodys in ("10.0.0.0", "10.0.0.1", "10.0.0.255"):
        with pytest.raises(Invalid, match="base, gateway or broadcast address: choose another"):
            parse_vip(nobodys, plan)
    for reserved in ("10.0.0.2", "10.0.0.16", "10.0.0.127"):
        with pytest.raises(Invalid, match=r"reserves .*: choose one from 10\.0\.0\.128 to 10\.0\.0\.254, or leave"):
            parse_vip(reserved, plan)


@given(st.text() | st.text("0123456789./:abcdef", max_size=24))
def test_reading_never_fails_and_what_is_read_is_read_again(text: str) -> None:
    prefix, address = find_prefix(text), find_address(text)
    assert prefix is None or find_prefix(str(prefix)) == prefix
    assert address is None or find_address(str(address)) == address
    assert not (is_ipv6(text) and (prefix or address))
