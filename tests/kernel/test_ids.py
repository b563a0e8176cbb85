import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.ids import derived_id, is_id, random_id
from remuda.kernel.randomness import SeededRandomness, SystemRandomness

NAMESPACE = str(uuid.NAMESPACE_DNS)


@given(st.integers())
def test_a_random_id_is_a_version_4_uuid_that_starts_with_a_letter(seed: int) -> None:
    drawn = random_id(SeededRandomness(seed))
    assert drawn[0].isalpha()
    assert uuid.UUID(drawn).version == 4
    assert str(uuid.UUID(drawn)) == drawn


def test_random_ids_differ() -> None:
    randomness = SystemRandomness()
    assert len({random_id(randomness) for _ in range(1000)}) == 1000


@given(st.uuids(), st.text())
def test_a_derived_id_is_a_version_5_uuid_that_starts_with_a_letter(namespace: uuid.UUID, name: str) -> None:
    derived = derived_id(str(namespace), name)
    assert derived[0].isalpha()
    assert uuid.UUID(derived).version == 5
    assert derived == derived_id(str(namespace), name)


@given(st.text())
def test_a_name_whose_uuid_starts_with_a_letter_keeps_it(name: str) -> None:
    plain = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    assert (derived_id(NAMESPACE, name) == plain) == plain[0].isalpha()


def test_deriving_again_hashes_the_raw_bytes_of_the_uuid_before() -> None:
    # Fixed so that ids derived by an earlier release are found again: "a" starts with a digit and needs more rounds.
    assert str(uuid.uuid5(uuid.NAMESPACE_DNS, "a"))[0].isdigit()
    assert derived_id(NAMESPACE, "a") == "e33b1119-4c8f-5203-b9b2-f57de07ac498"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
        "AB4E28BA-2FA1-41D2-883F-0016D3CCA427",
        "ab4e28ba2fa141d2883f0016d3cca427",
        "ab4e28ba-2fa1-41d2-883f-0016d3cca427\n",
        "{ab4e28ba-2fa1-41d2-883f-0016d3cca427}",
    ],
)
def test_other_text_is_no_id(text: str) -> None:
    assert not is_id(text)


def test_a_lower_case_uuid_that_starts_with_a_letter_is_an_id() -> None:
    assert is_id("ab4e28ba-2fa1-41d2-883f-0016d3cca427")
