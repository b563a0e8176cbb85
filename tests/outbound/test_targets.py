"""Reading the address of a server that somebody else names."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.outbound.addresses import Target, read_target

READ = [
    ("http://example.com", Target("http", "example.com", 80, "/")),
    ("https://example.com/", Target("https", "example.com", 443, "/")),
    ("HTTPS://Example.COM/Disk.RAW", Target("https", "example.com", 443, "/Disk.RAW")),
    ("http://example.com:8080/a?b=c&d#e", Target("http", "example.com", 8080, "/a?b=c&d")),
    ("http://example.com?b=c", Target("http", "example.com", 80, "/?b=c")),
    ("http://example.com#e", Target("http", "example.com", 80, "/")),
    ("http://example.com./a", Target("http", "example.com", 80, "/a")),
    ("http://bücher.example/ü", Target("http", "xn--bcher-kva.example", 80, "/ü")),
    ("http://under_score.example/", Target("http", "under_score.example", 80, "/")),
    ("http://host/a@b:c", Target("http", "host", 80, "/a@b:c")),
    ("http://8.8.8.8/", Target("http", "8.8.8.8", 80, "/", ip_address("8.8.8.8"))),
    ("http://8.8.8.8./", Target("http", "8.8.8.8", 80, "/", ip_address("8.8.8.8"))),
    ("http://[2606:4700::1]:81/", Target("http", "2606:4700::1", 81, "/", ip_address("2606:4700::1"))),
    ("http://[::FFFF:8.8.8.8]/", Target("http", "::ffff:808:808", 80, "/", ip_address("::ffff:808:808"))),
    ("http://８.8.8.8/", Target("http", "8.8.8.8", 80, "/", ip_address("8.8.8.8"))),  # noqa: RUF001  on purpose
    ("http://1e100.net/", Target("http", "1e100.net", 80, "/")),
    ("http://0x7f.example/", Target("http", "0x7f.example", 80, "/")),
]

REFUSED = [
    *("", "example.com", "//example.com/", "/path", "http:", "http://", "http:///a", "http:example.com", "http:/a"),
    *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "data:,a", "javascript:0", "unix:/a"),
    *(
        "http+unix://a/",
        " http://example.com/",
        "http://example.com/ ",
        "http://exa mple.com/",
        "http://example.com/a b",
    ),
    *("http://example.com/\r\nHost: a", "http://exam\tple.com/", "http://example.com\x00/", "http://example.com/\x7f"),
    # Credentials, and what some readers take for them.
    *("http://user@example.com/", "http://user:password@example.com/", "http://@example.com/", "http://:@example.com/"),
    *("http://127.0.0.1@example.com/", "http://example.com\\@127.0.0.1/", "http://example.com%40127.0.0.1/"),
    *("http://example.com:80@127.0.0.1/", "http://example.com\\127.0.0.1/", "http:\\\\127.0.0.1/", "http://a/\\b"),
    # Numbers in other ways.
    *("http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://127.1/"),
    *("http://127.0.1/", "http://127.0.0.1.1/", "http://127.0.0.256/", "http://0/", "http://0x/", "http://127.0.0.01/"),
    *("http://017700000001/", "http://example.1/", "http://example.0x1/", "http://example.1./", "http://127.0.0.0x1/"),
    # IPv6 in other ways.
    *("http://::1/", "http://[::1/", "http://::1]/", "http://[::1]a/", "http://[]/", "http://[::1%25eth0]/"),
    *("http://[fe80::1%eth0]/", "http://[127.0.0.1]/", "http://[example.com]/", "http://[v1.fe80]/", "http://[::1]]/"),
    # Ports.
    *("http://example.com:/", "http://example.com:0/", "http://example.com:65536/", "http://example.com:8o/"),
    *("http://example.com:-1/", "http://example.com:080808/", "http://example.com: 80/"),
    # Names that are none.
    *(
        "http://.example.com/",
        "http://example..com/",
        "http://-a.example/",
        "http://a*b/",
        "http://a,b/",
        "http://a%2eb/",
    ),
    *("http://.../", "http://" + "a" * 64 + ".example/", "http://$(id)/", "http://example.com/" + "a" * 4096),
]


@pytest.mark.parametrize(("url", "target"), READ)
def test_a_plain_address_is_read(url: str, target: Target) -> None:
    assert read_target(url) == target


@pytest.mark.parametrize("url", REFUSED)
def test_anything_else_is_not(url: str) -> None:
    assert read_target(url) is None


@given(st.text() | st.text("htp:/@[].#?%\\0123456789abcx-_ ").map("http://".__add__))
def test_whatever_is_read_says_the_same_when_it_is_read_again(url: str) -> None:
    target = read_target(url)
    if target is not None:
        assert read_target(f"{target.scheme}://{target.authority}{target.path}") == target


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("http://example.com:80/", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("http://example.com:443/", "example.com:443"),
        ("https://[2606:4700::1]:8443/", "[2606:4700::1]:8443"),
    ],
)
def test_an_authority_has_a_port_where_it_is_not_the_usual_one(url: str, authority: str) -> None:
    target = read_target(url)
    assert target is not None
    assert target.authority == authority


def test_a_target_at_an_address_is_the_same_thing_there() -> None:
    target = read_target("https://example.com/a?b")
    assert target is not None
    assert target.at(ip_address("1.2.3.4")) == "https://1.2.3.4:443/a?b"
    assert target.at(ip_address("2606:4700::1")) == "https://[2606:4700::1]:443/a?b"


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("c", "http://example.com:81/a/c"),
        ("/c?d", "http://example.com:81/c?d"),
        ("?d", "http://example.com:81/a/b?d"),
        ("//other.example/c", "http://other.example/c"),
        ("https://other.example/c", "https://other.example/c"),
        ("http://127.0.0.1/c", "http://127.0.0.1/c"),
        ("file:///etc/passwd", None),
        ("http://user@other.example/", None),
        ("http://[", None),
        ("//2130706433/", None),
        ("/\\other.example/", None),
    ],
)
def test_a_redirect_is_read_as_any_address(location: str, leads_to: str | None) -> None:
    target = read_target("http://example.com:81/a/b")
    assert target is not None
    assert target.redirected(location) == (None if leads_to is None else read_target(leads_to))
