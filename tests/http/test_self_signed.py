"""The certificate that a process makes for itself: for whom, for how long, and when there is another one."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from remuda.http.server.self_signed import LIFETIME, RENEWED, prepare_self_signed
from remuda.http.server.tls import ServerTls, TlsFiles
from remuda.kernel.encoding import fingerprint
from remuda.kernel.errors import Invalid
from remuda.kernel.randomness import SystemRandomness

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def prepared(folder: Path, *hosts: str, now: datetime = NOW) -> x509.Certificate:
    prepare_self_signed(folder / "tls.crt", folder / "tls.key", hosts=hosts, now=now, randomness=SystemRandomness())
    return x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())


def test_it_is_for_this_machine_and_the_names_it_is_given_and_issues_nothing(tmp_path: Path) -> None:
    made = prepared(tmp_path, "cloud.example.com", "10.0.0.7", "127.0.0.1")
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["cloud.example.com", "localhost"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["10.0.0.7", "127.0.0.1", "::1"]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert stat.S_IMODE((tmp_path / "tls.key").stat().st_mode) == 0o600
    assert made.not_valid_before_utc < NOW < made.not_valid_after_utc <= NOW + LIFETIME
    ServerTls(TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key"))


def test_two_have_different_keys(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        prepared(tmp_path / name)
    keys = [load_pem_private_key((tmp_path / each / "tls.key").read_bytes(), None) for each in ("one", "other")]
    assert keys[0].public_key() != keys[1].public_key()


def test_it_is_kept_until_it_is_renewed_in_time(tmp_path: Path) -> None:
    first = prepared(tmp_path)
    renewal = first.not_valid_after_utc - RENEWED
    assert prepared(tmp_path, "another.example.com") == first
    assert prepared(tmp_path, now=renewal - SECOND) == first
    second = prepared(tmp_path, now=renewal)
    assert second != first
    assert second.not_valid_after_utc > first.not_valid_after_utc
    ServerTls(TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key"))


@pytest.mark.parametrize("damaged", ["tls.crt", "tls.key"])
def test_what_is_missing_is_replaced(damaged: str, tmp_path: Path) -> None:
    first = prepared(tmp_path)
    (tmp_path / damaged).unlink()
    assert prepared(tmp_path) != first
    ServerTls(TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key"))


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"--data .*absent cannot be written \(No such file"):
        prepared(tmp_path / "absent")


def test_the_fingerprint_is_written_as_other_programs_write_it(tmp_path: Path) -> None:
    prepared(tmp_path)
    shown = fingerprint(ssl.PEM_cert_to_DER_cert((tmp_path / "tls.crt").read_text()))
    assert len(shown.split(":")) == 32
    assert shown == shown.upper()
