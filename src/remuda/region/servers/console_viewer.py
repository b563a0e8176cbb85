"""Viewer of a console: for whom its address was made, as a provider keeps it with the session."""

import msgspec

from remuda.access.principal import Principal


class ConsoleViewer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Actor that opened a console."""

    actor: str
    issuer: str = ""
    """Issuer of the actor's credentials; empty for our own."""
    organization: str = ""
    """The only organization in which the actor is known, by its identity provider."""

    @classmethod
    def parse(cls, text: str) -> "ConsoleViewer | None":
        """Return the viewer that a provider has kept, or None if it is not one of ours."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def viewer_of(principal: Principal) -> ConsoleViewer:
    return ConsoleViewer(
        actor=principal.actor_name, issuer=principal.issuer, organization=principal.member_of_only or ""
    )
