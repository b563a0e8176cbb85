"""Revocation lists of client certificates: which certificates are rejected, and which lists cannot be used."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography import x509
from structlog.testing import capture_logs

from remuda.http.certificates import ClientAuthorities, RevocationMonitor, read_chain, replace_lists
from remuda.http.revocations import RevocationLists
from remuda.kernel.errors import Unauthenticated
from tests.kit.certificates import Authority, Extension, Issued, authority, namesake

NOW, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
NAME, REVOKED = "unikorn-compute", 66


def scoped(**chosen: Any) -> Extension:
    """Return what makes a list a part of all revoked certificates."""
    fields: dict[str, Any] = {
        **dict.fromkeys(("full_name", "relative_name", "only_some_reasons")),
        **dict.fromkeys(("only_contains_user_certs", "only_contains_ca_certs"), False),
        **dict.fromkeys(("indirect_crl", "only_contains_attribute_certs"), False),
    }
    return x509.IssuingDistributionPoint(**fields | chosen), True


def point(name: str) -> Extension:
    """Return what makes a list the part of one distribution point."""
    return scoped(full_name=[x509.UniformResourceIdentifier(f"http://crl.test/{name}")])


def authorities(*lists: str, trusting: Sequence[Authority] = ()) -> ClientAuthorities:
    pem = "".join(each.own.pem for each in trusting or [authority()])
    return ClientAuthorities(pem.encode(), "".join(lists).encode())


def rejection(found: ClientAuthorities, shown: Issued, now: datetime = NOW) -> str:
    """Return why a certificate is rejected, the same through a proxy and by TLS; empty if it is accepted."""

    def by_proxy() -> None:
        found.verify(read_chain(quote(shown.pem).encode()), now)

    def by_tls() -> None:
        found.check_revocation(shown.pem, now)

    (reason,) = {_reason(by_proxy), _reason(by_tls)}
    return reason


def _reason(check: Callable[[], None]) -> str:
    try:
        check()
    except Unauthenticated as error:
        return error.message
    return ""


def test_m27_a_revoked_certificate_is_rejected_and_others_are_not() -> None:
    found = authorities(authority().revocation_list(REVOKED, 1, 2))
    assert rejection(found, authority().issue(NAME)) == ""
    assert rejection(found, authority().issue(NAME, serial=REVOKED)) == "certificate is revoked: use another one"
    assert rejection(found, authority().issue(NAME, serial=REVOKED)) == "certificate is revoked: use another one"


def test_without_lists_no_certificate_is_revoked() -> None:
    assert rejection(ClientAuthorities(authority().pem.encode()), authority().issue(NAME, serial=REVOKED)) == ""


@pytest.mark.parametrize(("begins", "ends"), [(NOW - 9 * DAY, NOW), (NOW + DAY, NOW + 9 * DAY)])
def test_m27_a_list_that_is_not_valid_now_rejects_every_certificate_of_its_authority(
    begins: datetime, ends: datetime
) -> None:
    found = authorities(authority().revocation_list(begins=begins, ends=ends))
    assert "the revocation list of its issuer is old" in rejection(found, authority().issue(NAME))
    assert found.revocations is not None
    assert "is not valid at this time" in found.revocations.problem(NOW)


def test_m27_a_certificate_whose_authority_has_no_list_is_rejected() -> None:
    other = authority("other")
    found = authorities(authority().revocation_list(), trusting=[authority(), other])
    assert "no revocation list of its issuer" in rejection(found, other.issue(NAME))
    below = authority().subordinate("below").issue(NAME)
    assert "no revocation list of its issuer" in rejection(found, below)


def test_an_authority_with_the_name_of_another_needs_a_list_of_its_own() -> None:
    other = namesake(authority())
    found = authorities(authority().revocation_list(REVOKED), trusting=[authority(), other])
    assert rejection(found, authority().issue(NAME)) == ""
    assert "no revocation list of its issuer" in rejection(found, other.issue(NAME))
    both = [authority().revocation_list(REVOKED), other.revocation_list()]
    found = authorities(*both, trusting=[authority(), other])
    assert rejection(found, other.issue(NAME, serial=REVOKED)) == "", "the other one has revoked its own"
    assert rejection(found, authority().issue(NAME, serial=REVOKED)) != ""


def test_m27_certificates_of_a_revoked_authority_are_rejected() -> None:
    below = authority().subordinate("below", serial=REVOKED)
    trusting = [authority(), Authority(Issued(below.own.certificate, below.own.key))]
    good = authorities(authority().revocation_list(), below.revocation_list(), trusting=trusting)
    assert rejection(good, below.issue(NAME)) == ""
    bad = authorities(authority().revocation_list(REVOKED), below.revocation_list(), trusting=trusting)
    assert rejection(bad, below.issue(NAME)) == "certificate is revoked: use another one"


def test_the_newest_list_counts_and_all_parts_of_it() -> None:
    old, new = authority().revocation_list(1, begins=NOW - 2 * DAY), authority().revocation_list(2, begins=NOW - DAY)
    for lists in ((old, new), (new, old)):
        found = authorities(*lists)
        assert rejection(found, authority().issue(NAME, serial=1)) == ""
        assert rejection(found, authority().issue(NAME, serial=2)) != ""
    parts = [authority().revocation_list(each, extensions=[point(str(each))]) for each in (1, 2)]
    found = authorities(*parts)
    assert [bool(rejection(found, authority().issue(NAME, serial=each))) for each in (1, 2, 3)] == [True, True, False]
    late = authority().revocation_list(ends=NOW, extensions=[point("3")])
    assert "is old" in rejection(authorities(*parts, late), authority().issue(NAME))


@pytest.mark.parametrize(
    ("pem", "cause"),
    [
        ("", "no revocation list as PEM"),
        (authority().pem, "no revocation list as PEM"),
        ("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "parsing"),
        (authority("other").revocation_list(), "which is not in server.client_ca_file"),
        (
            Authority(Issued(authority().own.certificate, authority("forger").own.key)).revocation_list(),
            "is not signed by this authority",
        ),
        (authority().revocation_list(extensions=[(x509.DeltaCRLIndicator(1), True)]), "is a delta"),
        (authority().revocation_list(extensions=[scoped(only_contains_ca_certs=True)]), "does not have all client"),
        (authority().revocation_list(extensions=[scoped(indirect_crl=True)]), "does not have all client"),
        (
            authority().revocation_list(
                extensions=[(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"), True)]
            ),
            "has the critical extension 1.2.3.4",
        ),
    ],
)
def test_m27_a_list_that_cannot_be_used_is_rejected(pem: str, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        RevocationLists(pem.encode(), [authority().own.certificate])


def test_m27_a_file_that_becomes_unusable_rejects_every_certificate_until_there_is_a_good_one(tmp_path: Path) -> None:
    path, shown = tmp_path / "lists.pem", authority().issue(NAME)
    found = authorities(authority().revocation_list())
    monitor = RevocationMonitor(found)
    for broken in ("nonsense", authority("other").revocation_list(), None):
        if broken is None:
            path.unlink()
        else:
            path.write_text(broken)
        with pytest.raises((OSError, ValueError)):
            replace_lists(found, path)
        assert "client_crl_file cannot be used" in rejection(found, shown)
        with capture_logs() as logs:
            monitor.check(NOW)
        assert logs[0]["event"] == "client certificates are rejected"
    path.write_text(authority().revocation_list())
    replace_lists(found, path)
    assert rejection(found, shown) == ""
    with capture_logs() as logs:
        monitor.check(NOW)
        monitor.check(NOW)
    assert [each["event"] for each in logs] == ["client certificates are accepted again"]


def test_the_log_says_once_that_a_list_has_expired() -> None:
    monitor = RevocationMonitor(authorities(authority().revocation_list(ends=NOW)))
    with capture_logs() as logs:
        monitor.check(NOW - DAY)
        monitor.check(NOW)
        monitor.check(NOW + DAY)
    assert [(each["log_level"], each["cause"]) for each in logs] == [
        ("error", "the list of CN=authority is not valid at this time")
    ]
