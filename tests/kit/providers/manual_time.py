"""Clock and randomness that a test moves by hand."""

from typing import Any


class ManualTime:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> Any:
        raise NotImplementedError

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError
