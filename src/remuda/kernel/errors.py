"""Errors that callers can receive, in one tree.

An error is raised with facts and formats its own message: the problem, then the remedy. ``code`` is stable and meant
for programs, ``status`` is the HTTP status, and ``retry`` says whether a retry, after following the message, can
succeed without a repair. No message contains a secret value.
"""

# ruff: noqa: N818  the names say what happened; the suffix "Error" would add nothing

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar


class RemudaError(Exception):
    """The base of all errors, never raised itself. Catch it where errors become responses or exit codes."""

    code: ClassVar[str] = "error"
    status: int = 500
    """Set by the class. Only OAuth 2, which has several for one kind of error, sets it per object."""
    retry: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(RemudaError):
    """Raised when an input breaks a rule; the caller corrects the named field.

    Without a remedy the problem is the whole message: for rules whose wording existing clients know.
    """

    code = "invalid"
    status = 422

    def __init__(self, field: str, problem: str, *, remedy: str = "") -> None:
        super().__init__(f"{field} {problem}: {remedy}." if remedy else problem)
        self.field = field


class InsufficientCapacity(RemudaError):
    """Raised when a request needs more space than is left; choose another target, or retry when space is free."""

    code = "insufficient_capacity"
    status = 422

    def __init__(self, field: str, problem: str, *, remedy: str) -> None:
        super().__init__(f"{field} {problem}: {remedy}.")
        self.field = field


class NotFound(RemudaError):
    """Raised when no object of this kind has this name; check the name, or create the object."""

    code = "not_found"
    status = 404

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"There is no {kind} {name}: check the name, or create it first.")
        self.kind, self.name = kind, name


class AlreadyExists(RemudaError):
    """Raised by a create whose name is taken; use the object that is there, or choose another name."""

    code = "already_exists"
    status = 409

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} already exists: use it, or choose another name.")
        self.kind, self.name = kind, name


class Conflict(RemudaError):
    """Raised when a write names an outdated version or uid; read the object again and redo the change."""

    code = "conflict"
    status = 409
    retry = True

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} has changed since it was read: read it again and redo the change.")
        self.kind, self.name = kind, name


class ReferenceRejected(RemudaError):
    """Raised when an object refers to a target that is absent or being deleted; refer to another one."""

    code = "reference_rejected"
    status = 409

    def __init__(self, kind: str, name: str, *, target_kind: str, target: str) -> None:
        super().__init__(
            f"The {kind} {name} cannot use the {target_kind} {target}, which is absent or being deleted: name another."
        )
        self.kind, self.name = kind, name
        self.target_kind, self.target = target_kind, target


class OwnerRejected(RemudaError):
    """Raised when a child is written under an owner that is absent or being deleted; choose another owner."""

    code = "owner_rejected"
    status = 409

    def __init__(self, kind: str, name: str, *, owner: str) -> None:
        super().__init__(
            f"The {kind} {name} cannot belong to {owner}, which is absent or being deleted: choose another owner."
        )
        self.kind, self.name, self.owner = kind, name, owner


class Gone(RemudaError):
    """Raised when a watch asks for a version older than the change history; list, then watch from the list."""

    code = "gone"
    status = 410

    def __init__(self, kind: str, version: str) -> None:
        super().__init__(
            f"Changes of {kind} since version {version} are no longer known: "
            "list again, then watch from the version of that list."
        )
        self.kind, self.version = kind, version


class Unreadable(RemudaError):
    """Raised when a stored document does not fit its type: correct it, or restore it from a backup."""

    code = "unreadable"
    status = 500

    def __init__(self, kind: str, name: str, *, cause: str) -> None:
        super().__init__(f"The stored {kind} {name} cannot be read: {cause}. Make the document match its schema.")


class Unsealable(RemudaError):
    """Raised when a sealed field cannot be decrypted: its key is missing or wrong, or it was altered or moved."""

    code = "unsealable"
    status = 500

    def __init__(self, key_id: str) -> None:
        super().__init__(
            f"A field sealed with key {key_id} cannot be decrypted: "
            "put the key it was sealed with back into the key file, or set the field again."
        )
        self.key_id = key_id


class Inconsistent(RemudaError):
    """Raised when there are none or several where there must be exactly one. Nothing is changed or guessed."""

    code = "inconsistent"
    status = 500

    def __init__(self, kind: str, name: str, *, part: str, found: int) -> None:
        super().__init__(
            f"The {kind} {name} has {found or 'no'} {part}s, and must have one: see its conditions and its timeline."
        )
        self.kind, self.name, self.found = kind, name, found


class Malformed(RemudaError):
    """Raised when a request cannot be decoded; the caller corrects every listed position."""

    code = "malformed"
    status = 400

    def __init__(self, message: str, problems: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        """The invalid positions as JSON pointers, each with the reason; never the value that was sent."""


class Unauthenticated(RemudaError):
    """Raised when a request has no valid credentials; get a token and send it."""

    code = "unauthenticated"
    status = 401


class OAuthError(RemudaError):
    """Raised by OAuth 2 endpoints, which have their own error format; `error` is a code of the standard.

    The description is for humans, as is every message. `headers` tell the client, for example, how to authenticate.
    """

    code = "oauth_error"
    status = 400

    def __init__(
        self, error: str, description: str, status: int = 400, *, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(description)
        self.error, self.status = error, status
        self.headers = tuple(headers)


class Forbidden(RemudaError):
    """Raised when the caller lacks a permission; the message names it, for the administrator who can grant it."""

    code = "forbidden"
    status = 403


class TooManyObjects(Forbidden):
    """Raised when a project or organization has as many objects of a kind as it may have; delete some first."""

    code = "too_many_objects"

    def __init__(self, kind: str, *, scope: str, limit: int) -> None:
        super().__init__(
            f"There are {limit} {kind} in this {scope}, which is the limit: delete those that are not needed, "
            "or ask the operator to raise server.object_limits."
        )


class NotAllowed(RemudaError):
    """Raised when a path does not support the method; use one of those it supports."""

    code = "method_not_allowed"
    status = 405

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__("the requested method was not allowed")
        self.allowed = tuple(allowed)


class TooSlow(RemudaError):
    """Raised when a request does not arrive in time; check the connection, then send it again."""

    code = "too_slow"
    status = 408
    retry = True

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The request did not arrive within {limit_s:g} s: check the connection, then send it again.")


class InFlight(RemudaError):
    """Raised when the same request, by its idempotency key, is being processed; wait, then retry."""

    code = "in_flight"
    status = 409
    retry = True

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"The request with this Idempotency-Key is being processed: retry in {retry_after_s} s.")
        self.retry_after_s = retry_after_s


class ResponseNotStored(RemudaError):
    """Raised when a request with this idempotency key was processed before and its response not stored."""

    code = "response_not_stored"
    status = 409

    def __init__(self) -> None:
        super().__init__(
            "The request with this Idempotency-Key was already processed. Its response may contain a secret and was not"
            " stored: read the resource, or send the request with a new key."
        )


class PlanRequired(RemudaError):
    """Raised by a destructive change that needs a plan; review the plan, then send its hash."""

    code = "plan_required"
    status = 409

    def __init__(self, plan: Any) -> None:
        super().__init__(
            "This change is destructive and requires the hash of its plan: "
            "review the plan, then send its hash as the parameter plan."
        )
        self.plan = plan
        """The plan as it is encoded in the body."""


class PlanChanged(RemudaError):
    """Raised when a change carries the hash of an outdated plan; review this one, then decide again."""

    code = "plan_changed"
    status = 409

    def __init__(self, plan: Any) -> None:
        super().__init__("The plan of this change has changed: review the new plan, then send its hash.")
        self.plan = plan
        """The plan as it is encoded in the body."""


class PreconditionFailed(RemudaError):
    """Raised when If-Match, or a similar precondition, names an outdated state; read again, then decide."""

    code = "precondition_failed"
    status = 412

    def __init__(self, kind: str, name: str, *, precondition: str = "If-Match") -> None:
        super().__init__(f"The {kind} {name} does not match {precondition}: read it again, then decide.")


class TooLarge(RemudaError):
    """Raised when a request exceeds a size limit; send a smaller one."""

    code = "too_large"
    status = 413

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"The {what} is longer than the limit of {limit} bytes: send a smaller one.")


class KeyReused(RemudaError):
    """Raised when an idempotency key comes with a different request; use a new key for each request."""

    code = "key_reused"
    status = 422

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was used for another request: use a new key for each request.")


class TooMany(RemudaError):
    """Raised when a caller exceeds its rate limit; wait as long as the message says."""

    code = "too_many"
    status = 429
    retry = True

    def __init__(self, retry_after_s: int, message: str = "") -> None:
        super().__init__(message or f"Too many requests: wait {retry_after_s} s, then send fewer.")
        self.retry_after_s = retry_after_s


class Unavailable(RemudaError):
    """Raised when a dependency does not work at the moment; wait and retry."""

    code = "unavailable"
    status = 503
    retry = True
    provider_problem: str = ""
    """The provider's problem, if that is the cause: for all users, without secrets and internal names.

    `providers.calls` sets it per error, and a controller that is delayed by the error reports it.
    """


class StorageFull(Unavailable):
    """Raised when the disk is full; free some space, and writes succeed again."""

    code = "storage_full"

    def __init__(self, path: str) -> None:
        super().__init__(f"The disk that holds {path} is full: free some space, then try again.")
        self.path = path


class StorageFailing(Unavailable):
    """Raised when the disk fails a read or a write; check the disk if that persists."""

    code = "storage_failing"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The disk failed while using {path} ({cause}): try again, and check the disk if it persists.")
        self.path, self.cause = path, cause


class TimedOut(Unavailable):
    """Raised when a response is not ready in time; read first, because the request may have been processed."""

    code = "timed_out"

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The response was not ready within {limit_s:g} s: read the resource before trying again.")


class ServerUnreachable(Unavailable):
    """Raised when another server does not respond; retry, then check its address and the network."""

    code = "server_unreachable"

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(
            f"The server {server} cannot be reached ({cause}): try again, and check its address if it persists."
        )
        self.server, self.cause = server, cause


class OutcomeUnknown(Unavailable):
    """Raised when a write was sent and no response arrived; read first, because it may have happened."""

    code = "outcome_unknown"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"No response to {what} arrived, and it may still take effect: check the result before you retry."
        )
        self.what = what


class Unusable(RemudaError):
    """Raised when a store cannot be opened; waiting does not help, the operator has to act."""

    code = "unusable"
    status = 503


class StoreLocked(Unusable):
    """Raised when another process has the store open; stop that one, or choose another directory."""

    code = "store_locked"

    def __init__(self, path: str) -> None:
        super().__init__(f"Another process has the store {path} open: stop it, or use another directory (--data).")
        self.path = path


class StoreDamaged(Unusable):
    """Raised when the content of a store is inconsistent; restore it from a backup."""

    code = "store_damaged"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The store {path} is damaged ({cause}): keep a copy of it and restore a backup.")
        self.path, self.cause = path, cause


class StoreTooOld(Unusable):
    """Raised when an unreleased revision has written the data; start with an empty data directory."""

    code = "store_too_old"

    def __init__(self, path: Path, *, found: int, known: int) -> None:
        super().__init__(
            f"The data in {path.parent} ({path.name}) has format {found}, and this program reads format {known}."
            f" No released version wrote format {found}: start with an empty data directory,"
            " or run the revision that wrote it."
        )
        self.path, self.found, self.known = path, found, known


class StoreTooNew(Unusable):
    """Raised when a later release has written the data; run that release or a newer one."""

    code = "store_too_new"

    def __init__(self, path: Path, *, found: int, known: int) -> None:
        super().__init__(
            f"The data in {path.parent} ({path.name}) has format {found}, and this program reads format {known}."
            " A later release wrote it: run that release or a newer one, or use another data directory."
        )
        self.path, self.found, self.known = path, found, known


class StoreForeign(Unusable):
    """Raised when the file is not a store. It is left unchanged: choose another directory."""

    code = "store_foreign"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The file {path} was not written by Remuda and is left unchanged: use another directory (--data)."
        )
        self.path = path


class StoreClosed(Unusable):
    """Raised when a store is used after it was closed, for example by a request during shutdown."""

    code = "store_closed"

    def __init__(self, path: str) -> None:
        super().__init__(f"The store {path} is closed: open it again to use it.")


class StoreInaccessible(Unusable):
    """Raised when the system denies opening or creating the store; correct the path or its permissions."""

    code = "store_inaccessible"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The store {path} cannot be opened ({cause}): check the path and its permissions.")
        self.path, self.cause = path, cause


ERRORS: Sequence[type[RemudaError]] = [
    each for each in tuple(globals().values()) if isinstance(each, type) and issubclass(each, RemudaError)
]
"""Every class above."""
