"""Parsing and verification of what browsers send for passkeys: anything may come."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.identity.factors.passkeys import RelyingParty
from remuda.identity.kinds.factors import Passkey
from remuda.kernel.encoding import from_base64url, to_base64url
from tests.kit.identity.software_authenticator import SecurityKey

PARTY = RelyingParty("https://remuda.test/identity")
KEY = SecurityKey(counts=False)
CHALLENGE = to_base64url(bytes(32))
OPTIONS = {"challenge": CHALLENGE}
CREATED, USED = json.loads(KEY.create(OPTIONS)), json.loads(KEY.get(OPTIONS))


def registered() -> Passkey:
    credential = PARTY.new_credential(json.dumps(CREATED), CHALLENGE)
    assert credential is not None
    return Passkey(
        id="one",
        name="key",
        added=datetime(2030, 1, 1, tzinfo=UTC),
        credential=to_base64url(credential.data),
        sign_count=0,
    )


PASSKEY = registered()


@pytest.mark.parametrize(
    ("url", "is_usable"),
    [
        ("https://cloud.example.com/identity", True),
        ("https://cloud.example.com:8443/identity", True),
        ("http://localhost:8080/identity", True),
        ("http://remuda.localhost:8080/identity", True),
        ("http://cloud.example.com/identity", False),
        ("http://127.0.0.1:8080/identity", False),
        ("https://192.0.2.1/identity", False),
        ("https://[2001:db8::1]/identity", False),
    ],
)
def test_passkeys_need_a_name_over_https_or_this_machine(url: str, is_usable: bool) -> None:  # noqa: FBT001
    assert RelyingParty(url).is_usable == is_usable


def test_the_response_of_the_browser_is_valid_as_it_was_sent() -> None:
    assert PARTY.use(json.dumps(USED), CHALLENGE, [PASSKEY]) is not None


@given(st.text(max_size=200))
def test_what_is_no_response_is_invalid_and_no_error(text: str) -> None:
    assert PARTY.new_credential(text, CHALLENGE) is None
    assert PARTY.use(text, CHALLENGE, [PASSKEY]) is None


@given(
    field=st.sampled_from(["clientDataJSON", "attestationObject", "authenticatorData", "signature", "rawId"]),
    place=st.integers(0, 10_000),
    flipped=st.integers(1, 255),
    cut=st.booleans(),
)
def test_one_changed_byte_or_a_cut_makes_a_response_invalid_and_no_error(
    field: str, place: int, flipped: int, *, cut: bool
) -> None:
    for sent in (CREATED, USED):
        changed: dict[str, Any] = json.loads(json.dumps(sent))
        holder = changed if field == "rawId" else changed["response"]
        if field not in holder:
            continue
        raw = bytearray(from_base64url(holder[field]))
        place %= len(raw)
        if cut:
            del raw[place:]
        else:
            raw[place] ^= flipped
        holder[field] = to_base64url(bytes(raw))
        if sent is CREATED:  # it is not signed, so that another credential of this site and challenge may be valid
            PARTY.new_credential(json.dumps(changed), CHALLENGE)
        else:
            assert PARTY.use(json.dumps(changed), CHALLENGE, [PASSKEY]) is None


@given(st.binary(max_size=2000))
def test_any_bytes_as_an_attestation_are_no_error(raw: bytes) -> None:
    for prefix in (b"", b"\xa3cfmtdnonegattStmt\xa0hauthData"):
        changed = json.loads(json.dumps(CREATED))
        changed["response"]["attestationObject"] = to_base64url(prefix + raw)
        assert PARTY.new_credential(json.dumps(changed), CHALLENGE) is None


def test_a_number_in_place_of_bytes_is_rejected_before_as_many_bytes_are_made() -> None:
    changed = json.loads(json.dumps(CREATED))
    for number in (b"\x1a\xff\xff\xff\xff", b"\x1b" + b"\xff" * 8, b"\x05"):
        raw = b"\xa3cfmtdnonegattStmt\xa0hauthData" + number
        changed["response"]["attestationObject"] = to_base64url(raw)
        assert PARTY.new_credential(json.dumps(changed), CHALLENGE) is None


def test_deeply_nested_cbor_is_rejected() -> None:
    changed = json.loads(json.dumps(CREATED))
    changed["response"]["attestationObject"] = to_base64url(b"\x81" * 12_000)
    assert PARTY.new_credential(json.dumps(changed), CHALLENGE) is None


def test_what_a_browser_sends_has_a_largest_size() -> None:
    """Reading CBOR copies what is left of it at each item."""
    for length, is_valid in ((8_000, True), (12_500, False)):
        created, used = KEY.create(OPTIONS, padding="a" * length), KEY.get(OPTIONS, padding="a" * length)
        assert (PARTY.new_credential(created, CHALLENGE) is not None) == is_valid
        assert (PARTY.use(used, CHALLENGE, [PASSKEY]) is not None) == is_valid
