"""Recovery codes: single-use codes of 80 bits, of which only the SHA-256 is stored."""

from collections.abc import Sequence

from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

COUNT = 10
_LETTERS = "023456789abcdefghjkmnpqrstuvwxyz"
"""32 characters, without 1, i, l and o, which are easily confused with others."""
_LENGTH, _GROUP = 16, 4


def new_recovery_codes(randomness: Randomness) -> tuple[Secret, ...]:
    """Return new codes in groups of four characters."""
    return tuple(_new_code(randomness) for _ in range(COUNT))


def recovery_hash(code: str) -> str:
    """Return the stored hash of a code, however it was typed: capitals, blanks and dashes do not count."""
    return token_hash("".join(letter for letter in code.lower() if letter in _LETTERS))


def recovery_hashes(codes: Sequence[Secret]) -> tuple[str, ...]:
    return tuple(recovery_hash(code.reveal()) for code in codes)


def _new_code(randomness: Randomness) -> Secret:
    drawn = "".join(_LETTERS[randomness.randrange(len(_LETTERS))] for _ in range(_LENGTH))
    return Secret("-".join(drawn[start : start + _GROUP] for start in range(0, _LENGTH, _GROUP)))
