"""ASGI types, and the exception for a client that disconnects."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class ClientDisconnect(Exception):  # noqa: N818  an event, not a failure: no response is possible or needed
    """Raised when the client closed the connection before the end of its request or of the response."""
