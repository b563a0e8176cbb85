"""One-time codes and recovery codes: vectors of RFC 6238, the window, replay."""

import base64
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.identity.factors.recovery import COUNT, new_recovery_codes, recovery_hash, recovery_hashes
from remuda.identity.factors.totp import STEP_S, matching_step, new_totp_secret, provisioning_uri, qr_code
from remuda.kernel.randomness import SeededRandomness
from remuda.kernel.secrets import Secret
from tests.kit.identity.software_authenticator import app_code

RFC_SECRET = Secret(base64.b32encode(b"12345678901234567890").decode())


@pytest.mark.parametrize(
    ("seconds", "eight_digits"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_the_codes_of_rfc_6238_are_accepted_at_their_times(seconds: int, eight_digits: str) -> None:
    now = datetime.fromtimestamp(seconds, UTC)
    assert matching_step(RFC_SECRET, eight_digits[2:], now, after=-1) == seconds // STEP_S


@given(
    seed=st.integers(0, 2**32),
    seconds=st.integers(0, 2**33),
    offset=st.integers(-5, 5),
    used=st.integers(-5, 5),
)
def test_a_code_is_accepted_one_step_around_its_own_and_after_the_last_used_one_only(
    seed: int, seconds: int, offset: int, used: int
) -> None:
    secret, now = new_totp_secret(SeededRandomness(seed)), datetime.fromtimestamp(seconds + 300, UTC)
    current = int(now.timestamp()) // STEP_S
    code = app_code(secret.reveal(), now, steps=offset)
    step = matching_step(secret, code, now, after=current + used)
    same = [
        each for each in (-1, 0, 1) if each > used and app_code(secret.reveal(), now, steps=each) == code
    ]  # two steps may have the same code by chance
    assert step == (current + same[0] if same else None)
    if abs(offset) <= 1 and offset > used:
        assert step is not None
    if step is not None:
        assert matching_step(secret, code, now, after=current + 1) is None


@given(st.text(max_size=20))
def test_what_is_not_six_digits_is_never_a_code(text: str) -> None:
    now = datetime.fromtimestamp(59, UTC)
    if "".join(text.split()) != "287082":
        assert matching_step(RFC_SECRET, text, now, after=0) is None
    assert matching_step(RFC_SECRET, " 287 082\n", now, after=-1) == 1


def test_an_app_reads_everything_from_the_uri_and_the_picture_needs_no_network() -> None:
    uri = provisioning_uri(RFC_SECRET, account="jo@example.com", issuer="Remuda remuda.test")
    parts = urlsplit(uri.reveal())
    assert (parts.scheme, parts.netloc, parts.path) == ("otpauth", "totp", "/Remuda%20remuda.test:jo%40example.com")
    assert parse_qs(parts.query) == {
        "secret": [RFC_SECRET.reveal()],
        "issuer": ["Remuda remuda.test"],
        "digits": ["6"],
        "period": ["30"],
        "algorithm": ["SHA1"],
    }
    picture = qr_code(uri)
    assert picture.startswith("<svg")
    assert "href" not in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_recovery_codes_have_eighty_bits_and_are_found_however_they_are_typed() -> None:
    codes = new_recovery_codes(SeededRandomness(1))
    assert len({code.reveal() for code in codes}) == COUNT
    assert all(len(code.reveal().replace("-", "")) == 16 for code in codes)
    first = codes[0].reveal()
    assert recovery_hash(first.upper().replace("-", " ")) == recovery_hashes(codes)[0]
    assert first not in repr(recovery_hashes(codes))
