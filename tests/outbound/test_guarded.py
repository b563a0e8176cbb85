"""Fetching from an address that somebody else chose: over real sockets, with names of our own."""

import asyncio
import ssl
from ipaddress import ip_network
from pathlib import Path

import pytest

from remuda.outbound.addresses import AddressPolicy, SystemResolver
from remuda.outbound.fetch import GuardedFetcher
from tests.kit.outbound_servers import HERE, Names, certified, fetched, redirecting, rejection_of, saying, serving

NO_NAMES = Names({})
NOT_PUBLIC = ("it is not on the public Internet", False)
NOT_PLAIN = ("it is not a plain http or https URL", False)


async def test_an_answer_is_read_and_nothing_is_asked_for_packed() -> None:
    async with serving(saying(b"hello ", b"world")) as served:
        guarded = GuardedFetcher(resolve=Names({"images.example": [["127.0.0.1"]]}), reach=HERE)
        url = served.url("images.example", "/a%20b?c=d")
        assert await fetched(guarded, url, {"Range": "bytes=0-1"}) == (200, b"hello world")
        head = served.asked[0].lower()
        assert head.startswith(b"get /a%20b?c=d http/1.1\r\n")
        for line in (b"host: images.example:%d" % served.port, b"accept-encoding: identity", b"range: bytes=0-1"):
            assert b"\r\n" + line + b"\r\n" in head
        assert (b"authorization" in head, b"cookie" in head) == (False, False)


async def test_packed_content_is_not_unpacked() -> None:
    async with serving(saying(b"\x1f\x8bpacked", headers="content-encoding: gzip\r\n")) as served:
        assert await fetched(GuardedFetcher(resolve=NO_NAMES, reach=HERE), served.url()) == (200, b"\x1f\x8bpacked")


async def test_any_status_is_an_answer() -> None:
    for status in (404, 500, 304, 302):
        async with serving(saying(status=f"{status} So")) as served:
            assert await fetched(GuardedFetcher(resolve=NO_NAMES, reach=HERE), served.url()) == (status, b"")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
        ),
        *(
            "http://10.0.0.1/",
            "http://100.64.0.1/",
            "http://[fd00::1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://0.0.0.0/",
        ),
        *("http://[::]/", "http://224.0.0.1/", "http://[2002:7f00:1::]/"),
    ],
)
async def test_an_inner_number_is_refused(url: str) -> None:
    assert await rejection_of(GuardedFetcher(resolve=NO_NAMES), url) == NOT_PUBLIC


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://images.example/", "file:///etc/passwd", "http://user@127.0.0.1/", "http://2130706433/"),
        *("http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/", "http://[fe80::1%25lo]/", "nonsense"),
    ],
)
async def test_an_odd_address_is_refused_before_anybody_is_asked(url: str) -> None:
    names = Names({})
    assert await rejection_of(GuardedFetcher(resolve=names, reach=HERE), url) == NOT_PLAIN
    assert names.asked == []


async def test_a_name_is_refused_if_any_of_its_numbers_is_inside() -> None:
    for numbers in (["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["2606:4700::1", "::1"], ["::ffff:192.168.0.1"]):
        guarded = GuardedFetcher(resolve=Names({"images.example": [numbers]}))
        assert await rejection_of(guarded, "http://images.example/") == NOT_PUBLIC


async def test_a_name_that_changes_its_mind_is_asked_once() -> None:
    """The first answer is checked and used; the second, which would lead inside, is never asked for."""
    names = Names({"rebinding.example": [["127.0.0.2"], ["127.0.0.1"]]})
    reach = AddressPolicy((ip_network("127.0.0.2/32"),))
    async with serving(saying(b"the checked one"), at="127.0.0.2") as served:
        assert await fetched(GuardedFetcher(resolve=names, reach=reach), served.url("rebinding.example")) == (
            *(200, b"the checked one"),
        )
        assert names.asked == ["rebinding.example"]


async def test_a_name_that_changes_its_mind_between_redirects_is_checked_again() -> None:
    names = Names({"rebinding.example": [["127.0.0.2"], ["127.0.0.1"]]})
    reach = AddressPolicy((ip_network("127.0.0.2/32"),))
    async with serving(redirecting("/again"), at="127.0.0.2") as served:
        assert (
            await rejection_of(GuardedFetcher(resolve=names, reach=reach), served.url("rebinding.example"))
            == NOT_PUBLIC
        )
        assert (names.asked, len(served.asked)) == (["rebinding.example"] * 2, 1)


@pytest.mark.parametrize(
    ("location", "rejection"),
    [
        ("http://127.0.0.1:{port}/", NOT_PUBLIC),
        ("http://[::ffff:7f00:1]:{port}/", NOT_PUBLIC),
        ("http://inner.example:{port}/", NOT_PUBLIC),
        ("//169.254.169.254/latest/meta-data", NOT_PUBLIC),
        ("http://unknown.example/", ("its name is unknown", True)),
        ("http://2130706433:{port}/", ("it redirects to something that is not a plain http or https URL", False)),
        ("http://user@images.example/", ("it redirects to something that is not a plain http or https URL", False)),
        ("file:///etc/passwd", ("it redirects to something that is not a plain http or https URL", False)),
        ("http://[", ("it redirects to something that is not a plain http or https URL", False)),
    ],
)
async def test_a_redirect_leads_nowhere_that_may_not_be_asked_for(location: str, rejection: tuple[str, bool]) -> None:
    names = Names({"images.example": [["127.0.0.2"]], "inner.example": [["10.0.0.1"]]})
    guarded = GuardedFetcher(resolve=names, reach=AddressPolicy((ip_network("127.0.0.2/32"),)))
    async with (
        serving(saying(b"an inner secret")) as inner,
        serving(redirecting(location.format(port=inner.port)), at="127.0.0.2") as outer,
    ):
        assert await rejection_of(guarded, outer.url("images.example")) == rejection
        assert inner.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_to_where_it_leads(status: int) -> None:
    names = Names({"first.example": [["127.0.0.1"]], "second.example": [["127.0.0.1"]]})
    async with (
        serving(saying(b"there")) as second,
        serving(redirecting(second.url("second.example", "/b"), f"{status} Away")) as first,
    ):
        asked = {"Range": "bytes=0-511"}
        assert await fetched(GuardedFetcher(resolve=names, reach=HERE), first.url("first.example"), asked) == (
            200,
            b"there",
        )
        assert second.asked[0].startswith(b"GET /b HTTP/1.1\r\n")
        assert b"host: second.example:%d\r\n" % second.port in second.asked[0].lower()
        assert b"range: bytes=0-511\r\n" in second.asked[0].lower()
        assert b"referer" not in second.asked[0].lower()


async def test_redirects_have_an_end() -> None:
    async with serving(redirecting("/again")) as served:
        rejection = await rejection_of(GuardedFetcher(resolve=NO_NAMES, reach=HERE), served.url())
        assert (rejection, len(served.asked)) == (("it redirects more than 5 times", False), 6)


async def test_no_cookie_comes_back() -> None:
    giving = redirecting("/again\r\nset-cookie: tenant=secret; Path=/")
    async with serving(giving) as served:
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE)
        for _ in range(2):
            await rejection_of(guarded, served.url())
        assert not any(b"cookie" in head.lower() for head in served.asked)


async def test_no_proxy_of_the_surroundings_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serving(saying(b"direct")) as served:
        assert await fetched(GuardedFetcher(resolve=NO_NAMES, reach=HERE), served.url()) == (200, b"direct")


async def test_the_next_number_is_tried_where_one_does_not_answer() -> None:
    async with serving(saying(b"here"), at="127.0.0.2") as served:
        names = Names({"images.example": [["127.0.0.1", "127.0.0.3", "127.0.0.2"]]})
        assert await fetched(GuardedFetcher(resolve=names, reach=HERE), served.url("images.example")) == (200, b"here")
        none = Names({"images.example": [["127.0.0.1", "127.0.0.3"]]})
        assert await rejection_of(GuardedFetcher(resolve=none, reach=HERE), served.url("images.example")) == (
            *("it cannot be connected to", True),
        )
        nobody = Names({"images.example": [[]]})
        assert await rejection_of(GuardedFetcher(resolve=nobody, reach=HERE), served.url("images.example")) == (
            *("it cannot be connected to", True),
        )


async def test_a_mapped_number_can_be_connected_to() -> None:
    async with serving(saying(b"here")) as served:
        names = Names({"images.example": [["::ffff:127.0.0.1"]]})
        assert await fetched(GuardedFetcher(resolve=names, reach=HERE), served.url("images.example")) == (200, b"here")


async def test_the_machines_own_resolver_is_checked_as_any_other() -> None:
    async with serving(saying(b"here")) as served:
        guarded = GuardedFetcher(resolve=SystemResolver())
        assert await rejection_of(guarded, served.url("localhost")) == NOT_PUBLIC
        everywhere_here = AddressPolicy((*HERE.allowed, ip_network("::1/128")))
        guarded = GuardedFetcher(resolve=SystemResolver(), reach=everywhere_here)
        assert await fetched(guarded, served.url("localhost")) == (200, b"here")
        assert await rejection_of(guarded, "http://nowhere.invalid/") == ("its name is unknown", True)


async def test_a_server_proves_by_its_certificate_that_it_has_the_name(tmp_path: Path) -> None:
    shown, trusting = certified("images.example", tmp_path)
    names = Names({"images.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]})
    asked_for: list[str | None] = []
    shown.sni_callback = lambda _, name, __: asked_for.append(name)
    async with serving(saying(b"proved"), tls=shown) as served:
        guarded = GuardedFetcher(resolve=names, reach=HERE, tls=trusting)
        assert await fetched(guarded, served.url("images.example", scheme="https")) == (200, b"proved")
        for host in ("other.example", "127.0.0.1"):
            rejection = await rejection_of(guarded, served.url(host, scheme="https"))
            assert rejection == ("it cannot be connected to", True)
        assert asked_for[:2] == ["images.example", "other.example"]
        stranger = GuardedFetcher(resolve=names, reach=HERE)
        assert await rejection_of(stranger, served.url("images.example", scheme="https")) == (
            *("it cannot be connected to", True),
        )
        assert len(served.asked) == 1


async def test_one_verifier_is_made_for_all_requests() -> None:
    async with serving(saying(b"here")) as served:
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE)
        await asyncio.gather(*(fetched(guarded, served.url()) for _ in range(5)))
        assert isinstance(guarded._tls, ssl.SSLContext)
        assert guarded._tls.verify_mode == ssl.CERT_REQUIRED
        assert guarded._tls.check_hostname
