"""The cookies by which we know a browser again.

The one that counts is 256 random bits and nothing else. Every browser that begins to log in has one, and what it begins
is sealed to it (`states`), so that nobody can begin a login and have somebody else's browser finish it. Each login
gives the browser a new one, so a cookie that was planted before is worth nothing after, and what was begun before
cannot be used again. The other one only says who has logged in here before (`familiar`).

Where our issuer is https, their names begin with `__Host-`: no other host, and nothing without TLS, can set them.
"""

import re
from datetime import timedelta

from remuda.identity.tokens.secrets import new_secret
from remuda.kernel.randomness import Randomness

_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")


class Cookie:
    """Reads and writes a cookie of ours."""

    def __init__(self, issuer: str, name: str) -> None:
        is_secure = issuer.startswith("https:")
        self.name = f"{'__Host-' if is_secure else ''}{name}"
        self._attributes = f"Path=/; HttpOnly; SameSite=Lax{'; Secure' if is_secure else ''}"

    def read(self, header: str) -> str:
        """Return the value that a browser sent, or nothing if it sent none or several."""
        pairs = (pair.strip().partition("=") for pair in header.split(";"))
        values = {value for name, _, value in pairs if name == self.name}
        return values.pop() if len(values) == 1 else ""

    def write(self, value: str, *, life: timedelta | None = None) -> str:
        """Return the header that sets it; without a life it goes when the browser is closed."""
        age = "" if life is None else f"; Max-Age={int(life.total_seconds())}"
        return f"{self.name}={value}; {self._attributes}{age}"

    def clear(self) -> str:
        """Return the header that takes it away."""
        return f"{self.name}=; {self._attributes}; Max-Age=0"


class BrowserCookie(Cookie):
    """The one that counts."""

    def __init__(self, issuer: str) -> None:
        super().__init__(issuer, "remuda-browser")

    def read(self, header: str) -> str:
        """Return the value that a browser sent, or nothing if it sent none, several, or one that is not ours."""
        value = super().read(header)
        return value if _VALUE.fullmatch(value) else ""

    def fresh(self, randomness: Randomness) -> str:
        """Return a value for a browser that has none, or needs another."""
        return new_secret(randomness).reveal()
