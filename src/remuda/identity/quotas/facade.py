"""Quotas as a port: what can be asked about limits and allocations, over HTTP or in the same process.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect.
"""

from dataclasses import dataclass

from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.service import Allocations, Limits
from remuda.kernel.clock import Clock
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The room."""

    store: Store
    clock: Clock
    ledger: Ledger

    @property
    def limits(self) -> Limits:
        """What can be asked of limits."""
        return Limits(store=self.store, ledger=self.ledger)

    @property
    def allocations(self) -> Allocations:
        """What can be asked of allocations."""
        return Allocations(store=self.store, clock=self.clock, ledger=self.ledger)
