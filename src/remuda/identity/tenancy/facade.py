"""The tenancy room: organizations, projects, providers, and which release of identity answers.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect. What the
caller may not see is told as everywhere: naming an organization or project outside one's rights is 403, existing or
not; another organization's object is 404; one's own without the right is 403.
"""

from dataclasses import dataclass

from remuda.identity.tenancy.service import Organizations, Projects, Providers
from remuda.kernel.clock import Clock
from remuda.resources.schema import VersionRead
from remuda.store.contract import Store

SERVICE_NAME = "unikorn-identity"
"""What identity calls itself: clients look for this beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """The room."""

    store: Store
    clock: Clock
    version: str
    """The release that runs."""

    @property
    def organizations(self) -> Organizations:
        """What can be asked of organizations."""
        return Organizations(store=self.store, clock=self.clock)

    @property
    def projects(self) -> Projects:
        """What can be asked of projects."""
        return Projects(store=self.store, clock=self.clock)

    @property
    def providers(self) -> Providers:
        """What can be asked of OAuth2 providers."""
        return Providers(store=self.store, clock=self.clock)

    def describe(self) -> VersionRead:
        """Return which release answers."""
        return VersionRead(name=SERVICE_NAME, version=self.version)
