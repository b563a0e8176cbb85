"""Idempotency keys: a request that is sent twice is executed once.

Before the request is executed, a record is made durable under (owner, key), and afterwards another with the response,
both in the log stream `idempotency`. A repeated request gets the stored response, byte for byte; a different request
under the same key is rejected; a repeat of a running request has to wait. A response that contains a secret is not
stored: a repeat gets an error. Routes that are idempotent by the id of their object need none of this
(`Route.is_idempotent`).

A request is executed under an operation id derived from (owner, key), after which everything that it creates is named.
So it is executed again if its outcome is unknown: the process died, the response could not be stored, or the server
failed (5xx). Each execution is an attempt with its own log subject, begun by a record that can be written only once, so
of two concurrent repeats one executes the request. With the record of a failed attempt its number is stored under the
operation, so that a repeat begins at the last failed attempt, however many there were.
"""

import hashlib
import math
import re
from collections.abc import Awaitable, Callable
from itertools import count

import msgspec
import structlog

from remuda.access.principal import Principal
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.responses import Header, Response
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, InFlight, KeyReused, Malformed, RemudaError, ResponseNotStored, TooMany
from remuda.kernel.ids import derived_id, random_id
from remuda.kernel.randomness import Randomness
from remuda.store.logs import Entry, Log, Record

Execute = Callable[[str], Awaitable[Response]]
"""Executes a request under an operation id. An error that it raises releases the key."""

STREAM = "idempotency"

REPLAYED: Header = (b"idempotency-replayed", b"true")
"""Marks a stored response."""

_OPERATIONS = "f1f4a5a0-8a5c-4d4b-9a39-3a6d5f0f6f0e"
_KEY = re.compile(r"[!-~]{1,255}")
STORED_BYTES = 256 << 20
"""Size of the responses of one caller that are stored in a day; of any further one only that it was given."""
_DAY_S = 86_400
_MAX_BODY = 128 << 10
"""Fits into a record on every backend, and is many times the response to a write."""
_SERVER_ERROR = 500
_WAIT_S = 1


def key_owner(principal: Principal) -> str:
    """Return the owner of a caller's keys. The name alone is ambiguous across issuers and services.

    A login to which an organization is closed does not get the responses of one to which it was open.
    """
    identity = (principal.subject, principal.actor_name, principal.service, principal.issuer, principal.member_of_only)
    return msgspec.json.encode((*identity, principal.closed) if principal.closed else identity).decode()


class _Started(msgspec.Struct, frozen=True, tag="started"):
    fingerprint: str
    boot: str


class _Responded(msgspec.Struct, frozen=True, tag="responded"):
    fingerprint: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Done(msgspec.Struct, frozen=True, tag="done"):
    """Executed; the response is not stored."""

    fingerprint: str


class _Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Not executed because of a server error: a repeat may try again."""

    fingerprint: str


class _LastFailure(msgspec.Struct, frozen=True):
    """Number of the attempt that failed last."""

    attempt: int


_Note = _Started | _Responded | _Done | _Failed


class Idempotency:
    """Idempotency keys of all APIs of a process. There is one, since it knows which requests are running."""

    def __init__(
        self, log: Log, *, clock: Clock, randomness: Randomness, time_limit_s: float, is_only_process: bool
    ) -> None:
        """Take the longest duration of a request, and whether this process is the only one that uses the log."""
        self._log, self._clock, self._randomness = log, clock, randomness
        self._time_limit_s, self._is_only_process = time_limit_s, is_only_process
        self._boot = random_id(randomness)
        self._running: set[str] = set()
        self._stored = RateLimiter(RateLimit(quota=STORED_BYTES, window_s=_DAY_S, name="stored responses"), clock)
        self._logger = structlog.get_logger()

    async def execute_once(
        self, key: str | None, *, who: str, fingerprint: bytes, keep: bool, execute: Execute
    ) -> Response:
        """Execute a request, unless it was executed or is running: then return its response, or raise an error."""
        operation, print_ = self.operation(key, who=who), hashlib.sha256(fingerprint).hexdigest()
        if key is None:
            return await execute(operation)
        attempt = 0
        if not await self._begin(f"{operation}/{attempt}", print_):
            earlier = await self._follow(operation, print_)
            if isinstance(earlier, Response):
                return earlier
            attempt = earlier
            if not await self._begin(f"{operation}/{attempt}", print_):
                raise InFlight(_WAIT_S)  # another process was first, or its record is not visible yet
        return await self._run(operation, attempt, print_, execute(operation), who=who if keep else None)

    def operation(self, key: str | None, *, who: str) -> str:
        """Return the operation id of an owner's key, which is always the same; without a key, a new id."""
        return random_id(self._randomness) if key is None else _operation(who, key)

    async def _begin(self, subject: str, fingerprint: str) -> bool:
        """Claim an attempt durably; return whether it was free."""
        if subject in self._running:
            return False
        self._running.add(subject)
        try:
            await self._log.append([_record(subject, _Started(fingerprint, self._boot), once=True)])
        except AlreadyExists:
            self._running.discard(subject)
            return False
        except BaseException:
            self._running.discard(subject)
            raise
        return True

    async def _run(
        self, operation: str, attempt: int, fingerprint: str, work: Awaitable[Response], *, who: str | None
    ) -> Response:
        """Run an attempt and record its outcome; the response is stored for its caller, if one is given."""
        try:
            try:
                response = await work
            except Exception:
                await self._close(operation, attempt, _Failed(fingerprint))
                raise
            await self._close(operation, attempt, self._outcome(response, fingerprint, who))
            return response
        finally:
            self._running.discard(f"{operation}/{attempt}")

    async def _close(self, operation: str, attempt: int, note: _Note) -> None:
        """Record the outcome of an attempt. If that fails, a repeat executes the request again."""
        records = [_record(f"{operation}/{attempt}", note)]
        if isinstance(note, _Failed) and attempt:
            records.append(_record(operation, _LastFailure(attempt)))
        try:
            await self._log.append(records)
        except RemudaError as error:
            self._logger.warning(
                "response not stored for its idempotency key", operation=operation, cause=error.message
            )

    def _outcome(self, response: Response, fingerprint: str, who: str | None) -> _Note:
        if response.status >= _SERVER_ERROR:
            return _Failed(fingerprint)
        if who is None or not isinstance(response.body, bytes) or not self._reserve_space(who, len(response.body)):
            return _Done(fingerprint)
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
        return _Responded(fingerprint, response.status, headers, response.body)

    def _reserve_space(self, who: str, size: int) -> bool:
        """Count a response of a caller as stored, and return whether there was space for it."""
        if size > _MAX_BODY:
            return False
        try:
            self._stored.take(who, size)
        except TooMany:
            return False
        return True

    async def _follow(self, operation: str, fingerprint: str) -> Response | int:
        """Read the attempts from the last failed one on; return the response of one, or the number of the next."""
        failures = (await self._log.read_back(STREAM, operation, limit=1)).entries
        first = msgspec.json.decode(failures[0].data, type=_LastFailure).attempt if failures else 0
        for attempt in count(first):
            subject = f"{operation}/{attempt}"
            page = await self._log.read(STREAM, subject, limit=2)
            if not page.entries:
                return attempt
            note = msgspec.json.decode(page.entries[-1].data, type=_Note)
            if note.fingerprint != fingerprint:
                raise KeyReused
            if subject in self._running:
                raise InFlight(_WAIT_S)
            match note:
                case _Responded(status=status, headers=headers, body=body):
                    stored = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)
                    return Response(status, body, (*stored, REPLAYED))
                case _Done():
                    raise ResponseNotStored
                case _Started(boot=boot):
                    self._check_dead(page.entries[-1], boot)
        raise AssertionError("there is always another attempt")

    def _check_dead(self, begun: Entry, boot: str) -> None:
        """Raise InFlight if the process that began an attempt may still be running it."""
        if boot == self._boot or self._is_only_process:
            return  # it is not running here, and no other process can run it
        left_s = self._time_limit_s - (self._clock.now() - begun.time).total_seconds()
        if left_s > 0:
            raise InFlight(max(_WAIT_S, math.ceil(min(left_s, self._time_limit_s))))


def _record(subject: str, note: _Note | _LastFailure, *, once: bool = False) -> Record:
    return Record(stream=STREAM, subject=subject, data=msgspec.Raw(msgspec.json.encode(note)), once=once)


def _operation(who: str, key: str) -> str:
    if not _KEY.fullmatch(key):
        problem = "is not 1 to 255 visible ASCII characters"
        raise Malformed(f"Idempotency-Key {problem}. Send another one.", [("Idempotency-Key", problem)])
    return derived_id(_OPERATIONS, msgspec.json.encode((who, key)).decode())
