"""The root of the tree, and what every error has."""

from typing import ClassVar


class RemudaError(Exception):
    """The root, never raised itself: catch it where any of our errors becomes an answer or an exit."""

    code: ClassVar[str] = "error"
    status: int = 500
    """A class has one; only where another standard has several for one kind of refusal has an object its own."""
    retry: ClassVar[bool] = False

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
