"""Record of what full resyncs find, which should be nothing."""

from remuda.reconcile.reporter import Reporter
from remuda.reconcile.results import ReconcileContext


class ResyncFinds(Reporter):
    """Lists the keys whose event was lost."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def lost_event_found(self, run: ReconcileContext) -> None:
        """Record a find."""
        self.found.append(f"{run.controller} {run.key}")
