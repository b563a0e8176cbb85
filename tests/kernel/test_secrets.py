import copy
import json
import logging
import pickle
import traceback

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.secrets import Secret

CANARY = "canary-7f3a"


def test_no_way_of_printing_shows_the_value() -> None:
    secret = Secret(CANARY)
    printed = [repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", f"{secret:>40}", f"{[secret]}"]
    printed += ["%s %r" % (secret, secret), ascii(secret)]  # noqa: UP031  old formatting is what is tested
    assert not any(CANARY in text for text in printed)


def test_a_traceback_with_locals_does_not_show_the_value() -> None:
    def fail(secret: Secret) -> None:
        raise RuntimeError(f"could not use {secret}")

    try:
        fail(Secret(CANARY))
    except RuntimeError as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "secret = Secret(…)" in shown
    assert "could not use Secret(…)" in shown
    assert CANARY not in shown


def test_logging_does_not_show_the_value(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(CANARY)
    logging.getLogger(__name__).warning("token %s in %r", secret, {"token": secret})
    assert "token Secret(…) in {'token': Secret(…)}" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize("spread", [pickle.dumps, json.dumps, msgspec.json.encode, msgspec.to_builtins, copy.copy])
def test_pickling_encoding_and_copying_are_refused_without_the_value(spread: object) -> None:
    assert callable(spread)
    with pytest.raises(TypeError) as caught:
        spread(Secret(CANARY))
    assert CANARY not in str(caught.value)


def test_a_secret_cannot_be_changed() -> None:
    secret = Secret(CANARY)
    with pytest.raises(AttributeError):
        secret._value = "other"
    with pytest.raises(AttributeError):
        del secret._value
    assert not hasattr(secret, "__dict__")
    assert secret.reveal() == CANARY


@given(st.text(st.characters()), st.text(st.characters()))
def test_secrets_are_equal_and_hash_alike_when_their_texts_are(one: str, other: str) -> None:
    assert (Secret(one) == Secret(other)) == (one == other)
    assert hash(Secret(one)) == hash(Secret(str(one)))
    assert Secret(one).reveal() == one


def test_a_secret_never_equals_its_text() -> None:
    assert Secret(CANARY) != CANARY
