"""An event loop whose time and order belong to a seed.

Contract: the same coroutine under the same seed takes the same steps in the same order. One step is one callback,
drawn by the seed from all that are ready, so every interleaving asyncio could ever show is a matter of trying seeds.
Time moves only when nothing is ready, and then in one jump to the next timer: an hour of waiting costs one step.
What would leave the simulation (sockets, threads, child processes) is refused; a wait that nothing can end is reported
as a deadlock with the place where each task stands; an error that nobody would see stops the run.

Limits: iterating over a set of tasks follows memory addresses, and over a set of strings the hash seed, so such code
keeps its own freedom. Run with PYTHONHASHSEED fixed to take the second away.

The private parts of asyncio this relies on are `_run_once`, `_ready` and `Handle._run`; test_loop.py pins them.
"""

import asyncio
import heapq
import itertools
import random
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

REFUSED = (
    *("add_reader", "add_writer", "add_signal_handler", "connect_accepted_socket", "connect_read_pipe"),
    *("connect_write_pipe", "create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection"),
    *("create_unix_server", "getaddrinfo", "getnameinfo", "run_in_executor", "sendfile", "sock_accept"),
    *("sock_connect", "sock_recv", "sock_sendall", "start_tls", "subprocess_exec", "subprocess_shell"),
)


class NotSimulatedError(RuntimeError):
    """The code under simulation reached for the real world."""


class DeadlockError(RuntimeError):
    """Nothing is ready, no timer is set, and somebody still waits."""


class EndlessError(RuntimeError):
    """The run took more steps than it was given: it spins, or waits behind timers that renew themselves."""


class UnseenError(RuntimeError):
    """A callback or an abandoned task failed; in production it would be a line in a log."""


class SimLoop(asyncio.BaseEventLoop):
    """Virtual time and seeded order. `after_step`, when set, follows every callback; what it raises ends the run."""

    _ready: deque[asyncio.Handle]

    def __init__(self, seed: int, *, max_steps: int = 1_000_000) -> None:
        super().__init__()
        self.steps = 0
        self.after_step: Callable[[], None] | None = None
        self._max_steps = max_steps
        self._choice = random.Random(seed)
        self._virtual_now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_numbers = itertools.count()
        self._task_numbers = itertools.count(1)
        self._births: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._owner_thread = threading.get_ident()
        self._unseen: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self._unseen.append(context))

    def time(self) -> float:
        return self._virtual_now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if threading.get_ident() != self._owner_thread:
            raise NotSimulatedError("call_soon_threadsafe from another thread: a simulation has one thread")
        return self.call_soon(callback, *args, context=context)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        number = next(self._task_numbers)
        # asyncio numbers tasks over the whole process, which would give a second run other names.
        options["name"] = options.get("name") or f"sim-{number}"
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        self._births[task] = number
        return task

    def _run_once(self) -> None:
        self._move_due_timers()
        # Rotating back keeps arrival order for those not chosen: a seed that always draws 0 is plain asyncio.
        drawn = self._choice.randrange(len(self._ready))
        self._ready.rotate(-drawn)
        handle = self._ready.popleft()
        self._ready.rotate(drawn)
        if handle.cancelled():
            return
        self.steps += 1
        handle._run()
        self._raise_unseen()
        if self.after_step is not None:
            self.after_step()
        if self.steps >= self._max_steps:
            raise EndlessError(f"no end after {self.steps} steps; {self._standing()}")

    def _move_due_timers(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._ready:
            if not self._timers:
                raise DeadlockError(f"deadlock at {self._virtual_now:g} s: {self._standing()}")
            self._virtual_now = max(self._virtual_now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._virtual_now:
            self._ready.append(heapq.heappop(self._timers)[2])

    def _raise_unseen(self) -> None:
        unseen, self._unseen = self._unseen, []
        for context in unseen:
            if "exception" in context:
                raise UnseenError(context["message"]) from context["exception"]

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        return sorted(asyncio.all_tasks(self), key=lambda task: self._births.get(task, 0))

    def _standing(self) -> str:
        return "pending: " + (", ".join(map(_where, self.pending_tasks())) or "no task")

    def cancel_remaining_tasks(self) -> None:
        """Cancel, in order of birth, every task that outlived the main one, and see them end."""
        self.after_step, self.steps = None, 0
        remaining = self.pending_tasks()
        for task in remaining:
            task.cancel()
        if remaining:
            self.run_until_complete(asyncio.wait(remaining))
        self.run_until_complete(self.shutdown_asyncgens())

    def close(self) -> None:
        self._timers.clear()
        super().close()


def _rejection(name: str) -> Callable[..., NoReturn]:
    def reject(_loop: SimLoop, *_args: object, **_options: object) -> NoReturn:
        raise NotSimulatedError(f"{name} leaves the simulation: put it behind a port")

    return reject


for _name in REFUSED:
    setattr(SimLoop, _name, _rejection(_name))


def _where(task: asyncio.Task[Any]) -> str:
    """Say which line of which file the innermost coroutine of a task stands at."""
    inner: Any = task.get_coro()
    place = ""
    while inner is not None and (frame := getattr(inner, "cr_frame", None)) is not None:
        place = f" at {frame.f_code.co_filename}:{frame.f_lineno}"
        inner = inner.cr_await
    name = getattr(task.get_coro(), "__qualname__", "?")
    return f"{task.get_name()} ({name}{place})"


def run(main: Coroutine[Any, Any, T], seed: int) -> T:
    """Run one coroutine on a fresh loop, cancel what it leaves behind, and close the loop."""
    loop = SimLoop(seed)
    try:
        return loop.run_until_complete(main)
    finally:
        finish(loop)


def finish(loop: SimLoop) -> None:
    """End a loop: cancel the tasks left on it, then close it even if they would not end."""
    try:
        loop.cancel_remaining_tasks()
    finally:
        loop.close()


class SimClock:
    """The kernel's clock on a simulated loop: monotonic time is the loop's, wall time can be made to jump."""

    def __init__(self, loop: SimLoop, start: datetime) -> None:
        if start.tzinfo is None:
            raise ValueError("the start of a simulated clock needs a time zone")
        self._loop = loop
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jump(self, by: timedelta) -> None:
        """Shift wall time alone, as a corrected system clock does; timers and monotonic time do not notice."""
        self._start += by
