"""What an operation remembers of whoever asked for it: as much of a principal as objects are to say of it later.

An operation is stored, and rights are not: they were judged when it was asked for, and may be others when it goes on.
"""

from typing import Literal

import msgspec

from remuda.access.principal import Principal


class Asker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who asked, for whom, and who pays."""

    subject: str
    type: Literal["user", "service", "system"]
    actor: str = ""
    organization: str | None = None
    project: str | None = None
    service: str | None = None
    """The service that acted: some tags are its own."""

    @property
    def principal(self) -> Principal:
        """The same one, without any rights."""
        return Principal(
            subject=self.subject,
            type=self.type,
            actor=self.actor,
            organization=self.organization,
            project=self.project,
            service=self.service,
        )


def asker_of(principal: Principal) -> Asker:
    """Return what is remembered of a principal."""
    return Asker(
        subject=principal.subject,
        type=principal.type,
        actor=principal.actor,
        organization=principal.organization,
        project=principal.project,
        service=principal.service,
    )
