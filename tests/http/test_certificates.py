"""Client certificates in headers: the forms in which they come, and who must have issued them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from remuda.http.certificates import ClientAuthorities, read_chain, to_pem
from remuda.kernel.errors import Malformed, Unauthenticated
from tests.kit.certificates import Authority, Extension, Issued, authority, self_signed, version_1

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NAME = "unikorn-compute"
NOT_TRUSTED = "certificate is not trusted: use one for client authentication that an authority in server.client_ca_file"


def verify(shown: Issued, *, trusting: Sequence[Authority] = (), now: datetime = NOW) -> None:
    pem = "".join(each.pem for each in trusting or [authority()])
    chain = read_chain(quote(shown.pem).encode())
    ClientAuthorities(pem.encode()).verify(chain, now)


def purposes(*usages: x509.ObjectIdentifier) -> list[Extension]:
    return [(x509.ExtendedKeyUsage(usages), False)]


def key_usage(*, for_certificates: bool) -> Extension:
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=for_certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    return usage, True


@pytest.mark.parametrize(
    "extensions",
    [
        [],
        purposes(ExtendedKeyUsageOID.CLIENT_AUTH),
        purposes(ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH),
        purposes(ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE),
        [(x509.SubjectAlternativeName([x509.DNSName("compute.example")]), False)],
    ],
)
def test_a_certificate_of_the_authority_is_trusted(extensions: list[Extension]) -> None:
    verify(authority().issue(NAME, extensions=extensions))


def test_m27_a_certificate_that_anybody_can_make_is_not_trusted() -> None:
    imposter = authority("imposter")
    twin = Authority(Issued(authority().own.certificate, imposter.own.key))
    for made in (self_signed(NAME), imposter.issue(NAME), twin.issue(NAME)):
        with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
            verify(made)
    carrying_its_authority = Issued(imposter.issue(NAME).certificate, imposter.own.key, (imposter.own.certificate,))
    with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
        verify(carrying_its_authority)


def test_a_certificate_for_servers_is_not_trusted_of_a_client() -> None:
    with pytest.raises(Unauthenticated, match="use one for client authentication"):
        verify(authority().issue(NAME, extensions=purposes(ExtendedKeyUsageOID.SERVER_AUTH)))


def test_m27_an_authority_and_a_certificate_without_extensions_are_no_client() -> None:
    for extensions in ([], purposes(ExtendedKeyUsageOID.CLIENT_AUTH)):
        below = authority().subordinate(NAME, extensions=extensions)
        with pytest.raises(Unauthenticated, match="certificate is that of an authority"):
            verify(below.own)
    with pytest.raises(Unauthenticated, match="certificate is that of an authority"):
        verify(authority().own)
    first_version = version_1(authority().issue(NAME), authority())
    with pytest.raises(Unauthenticated, match="of version 3 with basicConstraints CA:FALSE and extendedKeyUsage"):
        verify(first_version)
    verify(authority().issue(NAME, extensions=[(x509.BasicConstraints(ca=False, path_length=None), True)]))


def test_a_certificate_is_trusted_between_its_times() -> None:
    shown = authority().issue(NAME, begins=NOW, ends=NOW + DAY)
    verify(shown)
    for now in (NOW - DAY, NOW + DAY, NOW + 2 * DAY):
        with pytest.raises(Unauthenticated, match="certificate has expired or is not yet valid"):
            verify(shown, now=now)


def test_a_certificate_whose_authority_has_expired_is_not_trusted() -> None:
    below = authority().subordinate("short", begins=NOW - DAY, ends=NOW - DAY / 2)
    with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
        verify(below.issue(NAME))


def test_intermediate_certificates_may_come_with_it_or_be_among_the_authorities() -> None:
    below = authority().subordinate("below").subordinate("further below")
    shown = below.issue(NAME)
    assert len(shown.chain) == 2
    verify(shown)
    alone = Issued(shown.certificate, shown.key)
    with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
        verify(alone)
    verify(alone, trusting=[below])


def test_only_an_authority_issues_certificates() -> None:
    holder = Authority(authority().issue("unikorn-region", key="unikorn-region"), is_root=False)
    no_key = authority().subordinate("no key", extensions=[key_usage(for_certificates=False)])
    for_servers = authority().subordinate("servers", extensions=purposes(ExtendedKeyUsageOID.SERVER_AUTH))
    too_deep = authority("short chain", path_length=0)
    for issuer, trusted in [
        (holder, authority()),
        (no_key, authority()),
        (for_servers, authority()),
        (too_deep.subordinate("below"), too_deep),
    ]:
        with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
            verify(issuer.issue(NAME), trusting=[trusted])
    verify(authority().subordinate("key", extensions=[key_usage(for_certificates=True)]).issue(NAME))


def test_name_constraints_of_an_authority_hold() -> None:
    constraints = x509.NameConstraints([x509.DNSName("a.example")], None)
    below = authority().subordinate("constrained", extensions=[(constraints, True)])
    for host, is_inside in (("x.a.example", True), ("x.b.example", False)):
        shown = below.issue(NAME, extensions=[(x509.SubjectAlternativeName([x509.DNSName(host)]), False)])
        if is_inside:
            verify(shown)
        else:
            with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
                verify(shown)


def test_the_first_certificate_is_the_clients() -> None:
    first, other = authority().issue("unikorn-compute"), authority().issue("unikorn-region", key="unikorn-region")
    verify(Issued(first.certificate, first.key, (other.certificate,)))
    with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
        verify(Issued(self_signed("unikorn-region").certificate, first.key, (first.certificate,)))


def test_authorities_are_replaced_at_once_and_a_file_without_any_changes_nothing() -> None:
    authorities, other = ClientAuthorities(authority().pem.encode()), authority("other")
    of_first, of_other = [read_chain(each.issue(NAME).pem.encode()) for each in (authority(), other)]
    with pytest.raises(ValueError, match="PEM"):
        authorities.replace(b"nothing")
    authorities.verify(of_first, NOW)
    authorities.replace(other.pem.encode())
    authorities.verify(of_other, NOW)
    with pytest.raises(Unauthenticated, match=NOT_TRUSTED):
        authorities.verify(of_first, NOW)


PEM = authority().subordinate("below").issue(NAME).pem


@pytest.mark.parametrize(
    "sent",
    [
        quote(PEM),
        quote(PEM, safe=""),
        PEM,
        PEM.replace("\n", " "),
        PEM.replace("\n", "\t"),
        PEM.replace("\n", "%0A"),
        quote(PEM.replace("\n", "\r\n")),
    ],
    ids=["nginx", "all percent-encoded", "as it is", "blanks", "tabs", "only line breaks", "CRLF"],
)
def test_a_certificate_is_read_in_the_forms_in_which_proxies_send_it(sent: str) -> None:
    assert to_pem(read_chain(sent.encode())) == PEM


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "nonsense",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n",
        f"{PEM},{PEM}",
        f"x{PEM}",
        PEM * 3,
        "%" * 50_000,
        PEM.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
        authority().own.key_pem,
    ],
)
def test_what_is_no_certificate_is_told_what_the_proxy_must_send(sent: str) -> None:
    for each in (sent, quote(sent)):
        with pytest.raises(Malformed, match="must send ssl-client-cert as percent-encoded PEM of at most 5 certific"):
            read_chain(each.encode("latin-1"))


@given(st.binary(max_size=200))
def test_any_header_is_read_or_refused(header: bytes) -> None:
    framed = b"-----BEGIN CERTIFICATE-----" + header + b"-----END CERTIFICATE-----"
    for each in (header, framed):
        with pytest.raises(Malformed):
            read_chain(each)
