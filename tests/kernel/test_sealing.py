import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.errors import Invalid, Unsealable
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret

OLD = SealingKey("old", b"o" * 32)
NEW = SealingKey("new-1", b"n" * 32)
SEALER = Sealer(Keyring(NEW, (OLD,)))
CONTEXT = "Identity/a1/token"
CANARY = "canary-7f3a"

plain_texts = st.text(st.characters())
contexts = st.text().filter(lambda text: "\0" not in text)


@given(plain_texts, contexts)
def test_what_was_sealed_opens_in_its_context(text: str, context: str) -> None:
    sealed = SEALER.seal(Secret(text), context=context)
    assert sealed.startswith("sealed:v1:new-1:")
    assert SEALER.open(sealed, context=context).reveal() == text


@given(plain_texts, plain_texts)
def test_sealed_texts_are_the_same_exactly_when_the_secrets_are(one: str, other: str) -> None:
    sealed = [SEALER.seal(Secret(text), context=CONTEXT) for text in (one, other)]
    assert (sealed[0] == sealed[1]) == (one == other)


@given(contexts, contexts)
def test_a_sealed_text_does_not_open_elsewhere(here: str, there: str) -> None:
    sealed = SEALER.seal(Secret(CANARY), context=here)
    if here != there:
        assert sealed != SEALER.seal(Secret(CANARY), context=there)
        with pytest.raises(Unsealable):
            SEALER.open(sealed, context=there)


@given(st.data())
def test_a_sealed_text_with_any_character_changed_does_not_open(data: st.DataObject) -> None:
    sealed = SEALER.seal(Secret(CANARY), context=CONTEXT)
    place = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.sampled_from("abcABC012_-:=").filter(lambda character: character != sealed[place]))
    with pytest.raises(Unsealable):
        SEALER.open(sealed[:place] + other + sealed[place + 1 :], context=CONTEXT)


@given(st.integers(1, 60))
def test_a_shortened_sealed_text_does_not_open(cut: int) -> None:
    sealed = SEALER.seal(Secret(CANARY), context=CONTEXT)
    with pytest.raises(Unsealable):
        SEALER.open(sealed[:-cut], context=CONTEXT)


def test_previous_keys_still_open_and_the_current_one_seals() -> None:
    sealed_before = Sealer(Keyring(OLD)).seal(Secret(CANARY), context=CONTEXT)
    assert SEALER.open(sealed_before, context=CONTEXT) == Secret(CANARY)
    assert SEALER.seal(Secret(CANARY), context=CONTEXT) != sealed_before


def test_a_missing_key_is_named() -> None:
    sealed = SEALER.seal(Secret(CANARY), context=CONTEXT)
    with pytest.raises(Unsealable, match="new-1"):
        Sealer(Keyring(OLD)).open(sealed, context=CONTEXT)


def test_a_wrong_key_under_the_right_id_does_not_open() -> None:
    sealed = SEALER.seal(Secret(CANARY), context=CONTEXT)
    with pytest.raises(Unsealable):
        Sealer(Keyring(SealingKey("new-1", b"x" * 32))).open(sealed, context=CONTEXT)


def test_a_context_with_a_nul_is_refused() -> None:
    with pytest.raises(Invalid):
        SEALER.seal(Secret(CANARY), context="a\0b")


@pytest.mark.parametrize("text", ["", CANARY, "sealed:v1:", "sealed:v1:k:", "sealed:v2:k:AAAA", "sealed:v1:K:AAAA"])
def test_other_text_does_not_open(text: str) -> None:
    with pytest.raises(Unsealable):
        SEALER.open(text, context=CONTEXT)


@pytest.mark.parametrize("key_id", ["", "UPPER", "a:b", "a" * 33, "a\n"])
def test_a_malformed_key_id_is_refused(key_id: str) -> None:
    with pytest.raises(Invalid):
        SealingKey(key_id, b"k" * 32)


def test_a_short_key_and_a_doubled_id_are_refused() -> None:
    with pytest.raises(Invalid):
        SealingKey("short", b"k" * 31)
    with pytest.raises(Invalid):
        Keyring(OLD, (OLD,))


def test_neither_key_nor_secret_shows_in_reprs_or_tracebacks() -> None:
    assert "ooo" not in repr(OLD)
    assert "ooo" not in repr(Keyring(NEW, (OLD,)))
    sealed = Sealer(Keyring(OLD)).seal(Secret("canary" + "-sealed"), context=CONTEXT)
    try:
        SEALER.open(sealed, context="elsewhere")
    except Unsealable as error:
        shown = "".join(traceback.format_exception(error))
    assert "canary-sealed" not in shown
    assert "InvalidTag" not in shown


def test_the_sealed_form_is_fixed() -> None:
    # If this fails, stored secrets of earlier releases no longer compare equal or no longer open.
    assert (
        SEALER.seal(Secret("token"), context=CONTEXT) == "sealed:v1:new-1:TkKaclhuMcteuCOprawt6H0vxqLccEJyvPhSy27urfbX"
    )
