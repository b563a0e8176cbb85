import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.randomness import Randomness, SeededRandomness, SystemRandomness


def draws(randomness: Randomness) -> tuple[bytes, float, int]:
    return randomness.token_bytes(16), randomness.uniform(1.0, 2.0), randomness.randrange(1000)


@given(st.integers())
def test_one_seed_repeats_every_draw(seed: int) -> None:
    assert draws(SeededRandomness(seed)) == draws(SeededRandomness(seed))


def test_different_seeds_draw_differently() -> None:
    assert draws(SeededRandomness(1)) != draws(SeededRandomness(2))


def test_system_randomness_does_not_repeat() -> None:
    assert draws(SystemRandomness()) != draws(SystemRandomness())


@pytest.mark.parametrize("randomness", [SystemRandomness(), SeededRandomness(7)])
def test_draws_stay_in_their_range(randomness: Randomness) -> None:
    for _ in range(100):
        assert len(randomness.token_bytes(5)) == 5
        assert 2.0 <= randomness.uniform(2.0, 3.0) <= 3.0
        assert randomness.randrange(3) in {0, 1, 2}
