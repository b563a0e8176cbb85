"""How a server stands, in the few words by which servers are counted."""

from typing import NamedTuple

DRIFTED = "Drifted"
"""The condition that says whether a server is another at its provider than it was made."""


class Standing(NamedTuple):
    """One of a few dozen: many servers stand alike."""

    region: str
    phase: str
    """In lower case."""
    has_run: bool
    is_drifted: bool

    @property
    def text(self) -> str:
        """By which an index finds those that stand so."""
        ran, drifted = "ran" if self.has_run else "", "drifted" if self.is_drifted else ""
        return f"{self.region}/{self.phase}/{ran}/{drifted}"

    @classmethod
    def of_text(cls, text: str) -> "Standing":
        """Return what such a text stands for."""
        region, phase, ran, drifted = text.split("/")
        return cls(region, phase, bool(ran), bool(drifted))
