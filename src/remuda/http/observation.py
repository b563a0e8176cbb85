"""What is known of one request so far: `edge.observe` puts it into the scope, and the layers below fill it in."""

from starlette.types import Scope


class Observation:
    """What is known of one request so far. The layers below write to it."""

    __slots__ = (
        "bytes",
        "error_code",
        "is_cut",
        "is_stream",
        "peer",
        "principal",
        "route",
        "service",
        "started",
        "status",
        "trace_id",
    )

    def __init__(self, trace_id: str, started: float, peer: tuple[str, int] | None) -> None:
        self.trace_id, self.started, self.peer = trace_id, started, peer
        self.service: str | None = None
        """The table's name, set by the dispatcher."""
        self.route: str | None = None
        """The operation's name, set by the dispatcher; none if the path is unknown."""
        self.principal = ""
        """Who asks, once that is known: `Principal.who`."""
        self.error_code: str | None = None
        """The `code` of the error that was answered."""
        self.status = 0
        """The answer's status, once it has begun."""
        self.bytes = 0
        """The length of the answer's body so far."""
        self.is_stream = False
        """The answer is a stream of events, which lasts as long as the client wants."""
        self.is_cut = False
        """The client left before the answer was complete."""


def observation_of(scope: Scope) -> Observation:
    found: Observation = scope["remuda"]
    return found
