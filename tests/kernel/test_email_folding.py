"""Folding: what is one address, and what is not."""

import pytest

from remuda.identity.kinds.tenancy import domain_id
from remuda.identity.kinds.users import user_id
from remuda.kernel.text import folded


def test_only_the_letters_of_ascii_are_folded() -> None:
    assert folded("Kim@Example.COM") == "kim@example.com"
    assert folded("\u212aim \u0130 \u00c9") == "\u212aim \u0130 \u00c9"


@pytest.mark.parametrize("strange", ["\u212aim@example.com", "k\u0130m@example.com"])
def test_a_foreign_letter_is_nobody_elses_address(strange: str) -> None:
    assert user_id(strange) != user_id("kim@example.com")
    assert domain_id(strange.partition("@")[0]) != domain_id("kim")
    assert user_id(" Kim@Example.com") == user_id("kim@example.com")
