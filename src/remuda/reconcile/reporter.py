"""What can be seen of a controller from outside: metrics, tests and consoles plug in here."""

from collections.abc import Callable
from typing import Literal, ParamSpec, Protocol

import structlog

from remuda.reconcile.run import Run

FactsT = ParamSpec("FactsT")

PassOutcome = Literal["done", "again", "blocked", "failed", "conflict", "unavailable", "late"]
"""What a pass came to: its result, or what kept it from one. `late` ones did not end by their deadline."""

PASS_OUTCOMES: tuple[PassOutcome, ...] = ("done", "again", "blocked", "failed", "conflict", "unavailable", "late")
"""All of them, for metrics that are there from the start."""


class Reporter(Protocol):
    """Is told what happens. It must be quick, and should not raise: that would go unreported."""

    def opened(self, controller: str, *, depth: Callable[[], int], oldest_s: Callable[[], float]) -> None:
        """There is a controller, with these looks into its queue."""
        ...

    def finished(self, run: Run, outcome: PassOutcome, seconds: float) -> None:
        """A pass has ended."""
        ...

    def retried(self, run: Run, pause_s: float) -> None:
        """A pass that did not succeed will be tried again."""
        ...

    def scanned(self, controller: str, keys: int) -> None:
        """A full scan has handed out that many keys, be it when control began or later."""
        ...

    def scan_found(self, run: Run) -> None:
        """A full scan had something to do where nothing was under way: some event was lost, which is a bug."""
        ...

    def armed(self, controller: str) -> None:
        """A controller has a breaker, so there is something to tell by `tripped`."""
        ...

    def tripped(self, controller: str, groups: int) -> None:
        """In that many groups a controller's breaker stops it from destroying anything."""
        ...

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  it is the one thing that is told
        """The process has won or lost the right to control."""
        ...


class Silent:
    """Reports to nobody; the base of reporters that want to hear little."""

    def opened(self, controller: str, *, depth: Callable[[], int], oldest_s: Callable[[], float]) -> None:
        """Say nothing."""

    def finished(self, run: Run, outcome: PassOutcome, seconds: float) -> None:
        """Say nothing."""

    def retried(self, run: Run, pause_s: float) -> None:
        """Say nothing."""

    def scanned(self, controller: str, keys: int) -> None:
        """Say nothing."""

    def scan_found(self, run: Run) -> None:
        """Say nothing."""

    def armed(self, controller: str) -> None:
        """Say nothing."""

    def tripped(self, controller: str, groups: int) -> None:
        """Say nothing."""

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  as in the protocol
        """Say nothing."""


def tell(report: Callable[FactsT, None], *args: FactsT.args, **facts: FactsT.kwargs) -> None:
    """Report something. What a faulty reporter raises is told in the log, and keeps nobody from anything."""
    try:
        report(*args, **facts)
    except Exception:  # noqa: BLE001  whatever it was, control goes on
        structlog.get_logger().exception("reporter failed", report=getattr(report, "__name__", str(report)))
