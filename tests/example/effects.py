"""Every effect of a request is recorded: one is allowed, and more only within an operation.

Wrap the store that a service writes to in `RecordedStore`, and its ASGI app in `one_effect`: a request that has two
effects which no operation would take back together then fails with `TwoEffectsError`.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from remuda.store.contract import Store

WRITES = frozenset({"create", "update", "update_status", "delete"})

_effects: ContextVar[list[str] | None] = ContextVar("effects", default=None)


class TwoEffectsError(AssertionError):
    """A request did two things, of which one could have happened without the other."""


class RecordedStore:
    """A store like another, whose writes are noted on the request that made them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return _recorded(name, found) if name in WRITES else found


def _recorded(name: str, write: Callable[..., Any]) -> Callable[..., Any]:
    async def recorded(*arguments: Any, **options: Any) -> Any:
        written = await write(*arguments, **options)
        effects = _effects.get()
        if effects is not None and not _is_operation():
            effects.append(f"{name} {arguments[0]}")
        return written

    return recorded


def _is_operation() -> bool:
    task = asyncio.current_task()
    return task is not None and task.get_name().startswith("operation ")


def one_effect(app: ASGIApp) -> ASGIApp:
    """Return an app that fails where a request has two effects outside an operation."""

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        effects: list[str] = []
        token = _effects.set(effects)
        try:
            await app(scope, receive, send)
        finally:
            _effects.reset(token)
        if len(effects) > 1:
            raise TwoEffectsError(f"{scope['method']} {scope['path']} did: {'; '.join(effects)}")

    return counted
