"""Refresh tokens: random text of which hashes are stored.

`<session>.<family>.<secret>`: the first part finds the session, the second is the same in all refresh tokens of that
session, and the third is new in each. Who shows the family with another secret than the good one has had a token of
this session: that is how a second use is told from a guess, without a list of all that were used.
"""

import re
from dataclasses import dataclass

from remuda.identity.tokens.secrets import is_hash_of, new_secret, token_hash
from remuda.kernel import encoding as base64url
from remuda.kernel.ids import is_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

_FAMILY_BYTES = 16
_FORM = re.compile(r"([0-9a-f-]{36})\.([0-9A-Za-z_-]{22})\.([0-9A-Za-z_-]{43})")


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """One of them, taken apart."""

    session: str
    family: Secret
    secret: Secret

    @classmethod
    def new(cls, session: str, randomness: Randomness) -> "RefreshToken":
        family = base64url.encode(randomness.token_bytes(_FAMILY_BYTES))
        return cls(session, Secret(family), new_secret(randomness))

    @classmethod
    def parse(cls, text: str) -> "RefreshToken | None":
        """Return what somebody shows, or None if it is no refresh token of ours."""
        parts = _FORM.fullmatch(text)
        if parts is None or not is_id(parts[1]):
            return None
        return cls(parts[1], Secret(parts[2]), Secret(parts[3]))

    @property
    def text(self) -> Secret:
        """The token as it is handed out."""
        return Secret(f"{self.session}.{self.family.reveal()}.{self.secret.reveal()}")

    @property
    def hash(self) -> str:
        """What is stored of it."""
        return token_hash(self.text.reveal())

    @property
    def family_hash(self) -> str:
        return token_hash(f"{self.session}.{self.family.reveal()}")

    def is_of(self, family_hash: str) -> bool:
        """Tell whether this is the stored hash of its family."""
        return is_hash_of(family_hash, f"{self.session}.{self.family.reveal()}")

    def is_it(self, refresh_hash: str) -> bool:
        """Tell whether this is its own stored hash."""
        return is_hash_of(refresh_hash, self.text.reveal())

    def next(self, randomness: Randomness) -> "RefreshToken":
        """Return the one that comes after it."""
        return RefreshToken(self.session, self.family, new_secret(randomness))
