"""Every effect is recorded, and a request with two of them outside an operation fails.

Wrap the store and every other port through which something happens, and the ASGI app; then ask::

    recorder = Recorder()
    store = recorder.store(store)
    pasture = recorder.port("pasture", pasture)   # methods marked @effectful, or named in `effectful`
    app = recorder.app(app)                       # a request with two effects raises LoosePairError at its end

One write of the store is one effect, with all its log records; appending to a log alone (audit, idempotency) is none,
nor is a write that was refused or changed nothing, nor one of the journal, which says what operations do and how often
they were attempted. An effect belongs to the request in whose context it happens, and to
the operation that is bound to the log there. What happens in no request (controllers, recovery) is recorded and left
alone: it has its own proofs.
"""

import contextvars
import inspect
import itertools
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import structlog

from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.kernel.errors import RemudaError, Unavailable
from remuda.store.contract import Store
from remuda.store.objects import Resource
from tests.kit.forwarding_store import Passing

PortT = TypeVar("PortT")
ResultT = TypeVar("ResultT")
MethodT = TypeVar("MethodT", bound=Callable[..., Awaitable[Any]])

_MARK = "__effectful__"
_JOURNAL = " Operation"
"""End of the names of the effects that are writes of the journal."""
_request: contextvars.ContextVar[str | None] = contextvars.ContextVar("request", default=None)


def effectful(method: MethodT) -> MethodT:
    """Mark a port's method as one that changes something."""
    setattr(method, _MARK, True)
    return method


@dataclass(frozen=True)
class Effect:
    """Something that happened, and on whose behalf."""

    what: str
    request: str | None
    operation: str | None


class LoosePairError(AssertionError):
    """A request did two things, of which one could have happened without the other."""


class Recorder:
    """Knows of every effect."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self._numbers = itertools.count(1)

    def store(self, inner: Store) -> "RecordingStore":
        """Return the store, recorded."""
        return RecordingStore(inner, self)

    def port(self, name: str, port: PortT, *, effectful: Collection[str] = ()) -> PortT:
        """Return a port whose effectful methods are recorded."""
        return cast("PortT", _RecordingPort(name, port, self, frozenset(effectful)))

    def app(self, app: ASGIApp) -> ASGIApp:
        """Return the app with every HTTP request as a context of its own."""

        async def recorded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            request = f"#{next(self._numbers)} {scope['method']} {scope['path']}"
            token = _request.set(request)
            try:
                await app(scope, receive, send)
            finally:
                _request.reset(token)
            self._check(request)

        return recorded

    def note(self, what: str) -> None:
        """Record an effect that happens here and now."""
        operation = structlog.contextvars.get_contextvars().get("operation")
        self.effects.append(Effect(what, _request.get(), operation))

    async def watch(
        self, what: str, act: Callable[[], Awaitable[ResultT]], has_changed: Callable[[ResultT], bool] = lambda _: True
    ) -> ResultT:
        """Do something and record it: not if it was refused or changed nothing, but if nobody knows."""
        try:
            result = await act()
        except RemudaError as error:
            if isinstance(error, Unavailable):
                self.note(what)
            raise
        except BaseException:
            self.note(what)
            raise
        if has_changed(result):
            self.note(what)
        return result

    def _check(self, request: str) -> None:
        """Fail if a request did more than one effect or operation."""
        units: list[str] = []
        for effect in self.effects:
            if effect.what.endswith(_JOURNAL):
                continue
            unit = f"operation {effect.operation}" if effect.operation else effect.what
            if effect.request == request and not (effect.operation and unit in units):
                units.append(unit)
        if len(units) > 1:
            raise LoosePairError(f"{request} had several effects and no operation around them all: {units}")


class RecordingStore(Passing):
    """A store whose writes are effects."""

    def __init__(self, inner: Store, recorder: Recorder) -> None:
        super().__init__(inner)
        self._recorder = recorder

    async def around(self, verb: str, what: Resource | None, write: Callable[[], Awaitable[ResultT]]) -> ResultT:
        if verb == "append":
            return await write()

        def has_changed(written: ResultT) -> bool:
            is_same = what is not None and isinstance(written, Resource) and written.version == what.version
            return verb == "create" or not is_same

        return await self._recorder.watch(f"{verb} {type(what).__name__ if what else ''}".strip(), write, has_changed)


class _RecordingPort:
    def __init__(self, name: str, port: object, recorder: Recorder, named: frozenset[str]) -> None:
        self._name, self._port, self._recorder, self._named = name, port, recorder, named

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not (name in self._named or getattr(method, _MARK, False)):
            return method
        assert inspect.iscoroutinefunction(method), f"{self._name}.{name} is effectful and must be a coroutine function"

        @wraps(method)
        async def recorded(*arguments: Any, **options: Any) -> Any:
            return await self._recorder.watch(f"{self._name}.{name}", lambda: method(*arguments, **options))

        return recorded
