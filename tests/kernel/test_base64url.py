"""Bytes as text that fits a URL: one text for each, and no other is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.encoding import from_base64url, to_base64url


@given(st.binary())
def test_what_was_written_is_read_back(raw: bytes) -> None:
    text = to_base64url(raw)
    assert from_base64url(text) == from_base64url(text.encode()) == raw
    assert not set(text) & set("+/=")


@given(st.text(alphabet="AQgwxyz019-_+/= \n\u00e9\ud800", max_size=8))
def test_whatever_is_read_is_written_the_same(text: str) -> None:
    try:
        raw = from_base64url(text)
    except ValueError:
        return
    assert to_base64url(raw) == text


@pytest.mark.parametrize("text", ["A", "QQ==", "QR", "Q Q", "QQ\n", "+/8", "\u00e9\u00e9", "\ud800A"])
def test_padding_other_letters_and_unused_bits_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not base64url") as refused:
        from_base64url(text)
    assert repr(text) not in repr(refused.value), "what was shown may be a secret"
