import sys
from collections.abc import Callable
from types import FrameType
from urllib.parse import parse_qsl, quote_from_bytes, unquote_to_bytes, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.percent_encoding import percent_decoded, read_pairs

SIZE = 64 * 1024


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of functions that some work makes, also of those in C."""
    found = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal found
        found += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def rejected(work: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="percent sign"):
        work()


@given(st.binary())
def test_what_is_encoded_is_decoded(raw: bytes) -> None:
    assert percent_decoded(quote_from_bytes(raw).encode()) == raw


@given(st.lists(st.sampled_from([b"%41", b"%0a", b"%3d", b"=", b"=41", b"\r\n", b" ", b"_", b"+", b"a", b"\xff"])))
def test_all_but_escapes_is_kept(pieces: list[bytes]) -> None:
    encoded = b"".join(pieces)
    assert percent_decoded(encoded) == unquote_to_bytes(encoded)


@pytest.mark.parametrize("encoded", [b"%", b"a%4", b"%zz", b"%%41", b"%41%"])
def test_m27_a_percent_sign_that_begins_no_escape_is_an_error(encoded: bytes) -> None:
    for read in (lambda: percent_decoded(encoded), lambda: read_pairs(b"a=" + encoded, most=9)):
        rejected(read)


@pytest.mark.parametrize("piece", [b"%41", b"%E5%90%8D", b"a"])
def test_m27_decoding_makes_no_object_of_each_escape(piece: bytes) -> None:
    once, often = piece + b"%41", piece * (SIZE // len(piece)) + b"%41"
    assert calls_of(lambda: percent_decoded(often)) == calls_of(lambda: percent_decoded(once))


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=9))
def test_pairs_are_read_as_they_were_written(pairs: list[tuple[str, str]]) -> None:
    encoded = urlencode(pairs).encode()
    assert read_pairs(encoded, most=9) == pairs == parse_qsl(encoded.decode(), keep_blank_values=True)


@pytest.mark.parametrize("encoded", [b"", b"&", b"a", b"a=", b"=a", b"a&&b=c=d", b"a+b=c%2Bd+e", b"&a=b&"])
def test_pairs_are_those_of_the_standard_library(encoded: bytes) -> None:
    assert read_pairs(encoded, most=9) == parse_qsl(encoded.decode(), keep_blank_values=True)


@pytest.mark.parametrize("encoded", [b"a&b&c", b"a=%ff", b"%ff", b"a=\xc3\xa9"])
def test_too_many_pairs_and_other_encodings_are_errors(encoded: bytes) -> None:
    with pytest.raises(ValueError, match=r"ASCII|utf-8"):
        read_pairs(encoded, most=2)
