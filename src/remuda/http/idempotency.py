"""Idempotency keys: a request that is sent twice is carried out once.

Before the work a record is made durable under (who, key), and after it another with the answer. Both are in the log
stream `idempotency`, whose retention says how long a key is remembered. The same request then gets the stored answer,
byte for byte; another request under the key is refused; one that is still being worked on has to wait.

The work is given the id of its operation, derived from (who, key). Whatever it makes is named after that id, so to run
it again is safe, and that is done where nobody can tell what became of it: the process died, the answer could not be
stored, or it was our failure (5xx). Each run is an attempt with a subject of its own, begun by a record that can be
written once; so of two who want to run a request again, one does.

An answer that holds a secret is not stored. A repeat is told so, and nothing is run. What is done once under its id
anyway needs none of this (`Route.is_idempotent`).
"""

import hashlib
import math
import re
from collections.abc import Awaitable, Callable
from itertools import count

import msgspec
import structlog

from remuda.access.principal import Principal
from remuda.http.responses import Answer, Header
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, AnswerNotKept, InFlight, KeyReused, Malformed, RemudaError
from remuda.kernel.ids import derived_id, random_id
from remuda.kernel.randomness import Randomness
from remuda.store.logs import Entry, Log, Record

Work = Callable[[str], Awaitable[Answer]]
"""Carries a request out under the id of its operation. An error that it raises frees the key."""

STREAM = "idempotency"
"""The log stream of the records."""

REPLAYED: Header = (b"idempotency-replayed", b"true")
"""Tells a stored answer from a new one."""

_OPERATIONS = "f1f4a5a0-8a5c-4d4b-9a39-3a6d5f0f6f0e"
_KEY = re.compile(r"[!-~]{1,255}")
_LARGEST_BODY = 128 << 10
"""What fits a record on every backend, many times over what a write answers."""
_OUR_FAILURE = 500
_WAIT_S = 1


def holder_of(principal: Principal) -> str:
    """Return whose keys they are. A name alone does not tell: another issuer, or another service, may mean another."""
    told_apart = (principal.subject, principal.who, principal.service, principal.issuer, principal.vouched_by)
    return msgspec.json.encode(told_apart).decode()


class _Begun(msgspec.Struct, frozen=True, tag="begun"):
    fingerprint: str
    boot: str


class _Answered(msgspec.Struct, frozen=True, tag="answered"):
    fingerprint: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Done(msgspec.Struct, frozen=True, tag="done"):
    """Carried out, and the answer is not kept."""

    fingerprint: str


class _Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Not carried out, through our own fault: whoever asks may try again."""

    fingerprint: str


_Note = _Begun | _Answered | _Done | _Failed


class Idempotency:
    """The keys of all APIs of a process: make one for each process, since it knows what is running here."""

    def __init__(
        self,
        log: Log,
        *,
        clock: Clock,
        randomness: Randomness,
        time_limit_s: float,
        is_only_process: bool,
    ) -> None:
        """Take how long a request may run at most, and whether no other process can be using this log."""
        self._log, self._clock, self._randomness = log, clock, randomness
        self._time_limit_s, self._is_only_process = time_limit_s, is_only_process
        self._boot = random_id(randomness)
        self._running: set[str] = set()
        self._told = structlog.get_logger()

    async def once(self, key: str | None, *, who: str, fingerprint: bytes, keep: bool, work: Work) -> Answer:
        """Carry a request out, unless it was or is being: then answer as it was answered, or say so."""
        operation, print_ = self.operation(key, who=who), hashlib.sha256(fingerprint).hexdigest()
        if key is None:
            return await work(operation)
        if await self._begin(f"{operation}/0", print_):
            return await self._run(f"{operation}/0", print_, work(operation), keep=keep)
        earlier = await self._follow(operation, print_)
        if isinstance(earlier, Answer):
            return earlier
        if not await self._begin(earlier, print_):  # somebody else was quicker, or we do not see it yet
            raise InFlight(_WAIT_S)
        return await self._run(earlier, print_, work(operation), keep=keep)

    def operation(self, key: str | None, *, who: str) -> str:
        """Return the id of what somebody does under a key: always the same one; without a key, always another one."""
        return random_id(self._randomness) if key is None else _operation(who, key)

    async def _begin(self, subject: str, fingerprint: str) -> bool:
        """Make an attempt ours, durably; tell whether it was nobody's."""
        if subject in self._running:
            return False
        self._running.add(subject)
        try:
            await self._note(subject, _Begun(fingerprint, self._boot), once=True)
        except AlreadyExists:
            self._running.discard(subject)
            return False
        except BaseException:
            self._running.discard(subject)
            raise
        return True

    async def _run(self, subject: str, fingerprint: str, work: Awaitable[Answer], *, keep: bool) -> Answer:
        try:
            try:
                answer = await work
            except Exception:
                await self._close(subject, _Failed(fingerprint))
                raise
            await self._close(subject, _outcome(answer, fingerprint, keep=keep))
            return answer
        finally:
            self._running.discard(subject)

    async def _close(self, subject: str, note: _Note) -> None:
        """Write down how an attempt ended. If that fails the caller is answered still: a repeat would run again."""
        try:
            await self._note(subject, note)
        except RemudaError as error:
            self._told.warning("answer not kept for its idempotency key", subject=subject, cause=error.sentence)

    async def _follow(self, operation: str, fingerprint: str) -> Answer | str:
        """Go through the attempts that were made; return the answer of one, or the subject of the next to make."""
        for attempt in count():
            subject = f"{operation}/{attempt}"
            page = await self._log.read(STREAM, subject, limit=2)
            if not page.entries:
                return subject
            note = msgspec.json.decode(page.entries[-1].data, type=_Note)
            if note.fingerprint != fingerprint:
                raise KeyReused
            if subject in self._running:
                raise InFlight(_WAIT_S)
            match note:
                case _Answered(status=status, headers=headers, body=body):
                    stored = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)
                    return Answer(status, body, (*stored, REPLAYED))
                case _Done():
                    raise AnswerNotKept
                case _Begun(boot=boot):
                    self._check_dead(page.entries[-1], boot)
        raise AssertionError("there is always another attempt")

    def _check_dead(self, begun: Entry, boot: str) -> None:
        """Raise InFlight if whoever began an attempt may still be at it."""
        if boot == self._boot or self._is_only_process:
            return  # it is not running here, and there is no other place where it could be
        left_s = self._time_limit_s - (self._clock.now() - begun.time).total_seconds()
        if left_s > 0:
            raise InFlight(max(_WAIT_S, math.ceil(min(left_s, self._time_limit_s))))

    async def _note(self, subject: str, note: _Note, *, once: bool = False) -> None:
        data = msgspec.Raw(msgspec.json.encode(note))
        await self._log.append([Record(stream=STREAM, subject=subject, data=data, once=once)])


def _operation(who: str, key: str) -> str:
    if not _KEY.fullmatch(key):
        problem = "is not 1 to 255 visible ASCII characters"
        raise Malformed(f"Idempotency-Key {problem}: send another one.", [("Idempotency-Key", problem)])
    return derived_id(_OPERATIONS, msgspec.json.encode((who, key)).decode())


def _outcome(answer: Answer, fingerprint: str, *, keep: bool) -> _Note:
    if answer.status >= _OUR_FAILURE:
        return _Failed(fingerprint)
    if not keep or not isinstance(answer.body, bytes) or len(answer.body) > _LARGEST_BODY:
        return _Done(fingerprint)
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers)
    return _Answered(fingerprint, answer.status, headers, answer.body)
