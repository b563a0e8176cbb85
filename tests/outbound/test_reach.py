"""Which numeric addresses may be spoken to."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.outbound.addresses import AddressPolicy, unmapped

OUTSIDE = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255"),
    *("192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450::1"),
    *("2001:4860:4860::8888", "64:ff9b::8.8.8.8", "2002:808:808::1", "::ffff:8.8.8.8"),
]

INSIDE = [
    *(
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
    ),
    *("169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1"),
    *("192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "100::1", "2001:db8::1"),
    *("3fff::1", "2001::1", "2001:10::1", "2001:20::1", "5f00::1", "4000::1", "64:ff9b:1::1", "64:ff9b:1::8.8.8.8"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::127.0.0.1", "::8.8.8.8"),
    *("64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "2002:7f00:1::1", "2002:a00:1::1"),
    *("2002:a9fe:a9fe::", "::ffff:0:127.0.0.1", "2001:0:7f00:1::", "fd00:ec2::254", "2606:4700::1%eth0"),
]


@pytest.mark.parametrize("address", OUTSIDE)
def test_the_public_internet_may_be_spoken_to(address: str) -> None:
    assert AddressPolicy().allows(ip_address(address))


@pytest.mark.parametrize("address", INSIDE)
def test_nothing_else_may_be(address: str) -> None:
    assert not AddressPolicy().allows(ip_address(address))


def test_what_an_operator_allows_may_be_in_every_spelling() -> None:
    reach = AddressPolicy((ip_network("10.1.0.0/16"), ip_network("fd00:1::/32")))
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00:1::1", "8.8.8.8"):
        assert reach.allows(ip_address(address))
    for address in ("10.2.0.0", "::ffff:10.2.0.0", "fd00:2::1", "127.0.0.1", "64:ff9b::10.1.2.3", "2002:a01:203::"):
        assert not reach.allows(ip_address(address))


def test_a_mapped_address_is_the_one_it_spells() -> None:
    assert unmapped(ip_address("::ffff:8.8.8.8")) == IPv4Address("8.8.8.8")
    for address in ("8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700::1"):
        assert unmapped(ip_address(address)) == ip_address(address)


@given(st.ip_addresses(v=4))
def test_an_address_is_permitted_only_where_python_calls_it_global_too(address: IPv4Address) -> None:
    permitted = AddressPolicy().allows(address)
    assert not permitted or (address.is_global and not address.is_multicast and not address.is_reserved)
    assert permitted == AddressPolicy().allows(IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed))
    assert permitted == AddressPolicy().allows(IPv6Address(b"\0\x64\xff\x9b" + b"\0" * 8 + address.packed))
    assert permitted == AddressPolicy().allows(IPv6Address(b"\x20\x02" + address.packed + b"\0" * 10))


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_is_permitted_only_where_python_calls_it_global_too(address: IPv6Address) -> None:
    assert not AddressPolicy().allows(address) or (address.is_global and not address.is_multicast)
