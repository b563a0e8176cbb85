"""Every error a caller may meet, in one tree.

::

    RemudaError
    ├── Malformed             400  the request cannot be read
    ├── Unauthenticated       401  nobody we know asks
    ├── Forbidden             403  the caller may not do this
    ├── Invalid               422  the input is wrong
    ├── NotFound              404  there is no such object
    ├── NotAllowed            405  the path knows no such method
    ├── TooSlow               408  the request did not arrive in time               (retry)
    ├── AlreadyExists         409  the name is taken
    ├── Conflict              409  written from a stale version                     (retry)
    ├── ReferenceRefused      409  names something absent or being deleted
    ├── OwnerRefused          409  the owner is absent or being deleted
    ├── InFlight              409  the same request is being worked on              (retry)
    ├── AnswerNotKept         409  done already, and its answer held a secret
    ├── Gone                  410  the version is too old to watch from
    ├── PreconditionFailed    412  the object is not the one the caller has seen
    ├── TooLarge              413  the request is longer than we take
    ├── KeyReused             422  the idempotency key belongs to another request
    ├── TooMany               429  the caller asks too often                        (retry)
    ├── Unavailable           503  not now                                          (retry)
    │   ├── StorageFull            the disk has no room
    │   ├── StorageFailing         the disk refuses
    │   ├── TimedOut               the answer was not ready in time
    │   ├── ServerUnreachable      the server we depend on does not answer
    │   └── OutcomeUnknown         sent, but nobody said what became of it
    ├── Unusable              503  the store cannot be opened
    │   ├── StoreLocked            another process has it open
    │   ├── StoreDamaged           its content is broken
    │   ├── StoreTooNew            a later release wrote it
    │   ├── StoreForeign           it is no Remuda file
    │   ├── StoreClosed            it was closed while somebody still used it
    │   └── StoreInaccessible      the system does not let us at it
    ├── Unreadable            500  a stored document is not what its kind says
    └── Unsealable            500  a sealed field does not open

An error is raised with facts and writes its own sentence: what happened, then what to do about it. ``code`` is stable
and meant for programs, ``status`` is the HTTP answer, and ``retry`` says whether trying again, after whatever the
sentence asks for, can succeed while nobody repairs anything. No sentence ever holds a secret value.
"""

# ruff: noqa: N818  these names are read as what happened; "Error" at the end of each would add nothing

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "AlreadyExists",
    "AnswerNotKept",
    "Conflict",
    "Forbidden",
    "Gone",
    "InFlight",
    "Invalid",
    "KeyReused",
    "Malformed",
    "NotAllowed",
    "NotFound",
    "OutcomeUnknown",
    "OwnerRefused",
    "PreconditionFailed",
    "ReferenceRefused",
    "RemudaError",
    "ServerUnreachable",
    "StorageFailing",
    "StorageFull",
    "StoreClosed",
    "StoreDamaged",
    "StoreForeign",
    "StoreInaccessible",
    "StoreLocked",
    "StoreTooNew",
    "TimedOut",
    "TooLarge",
    "TooMany",
    "TooSlow",
    "Unauthenticated",
    "Unavailable",
    "Unreadable",
    "Unsealable",
    "Unusable",
]


class RemudaError(Exception):
    """The root, never raised itself: catch it where any of our errors becomes an answer or an exit."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retry: ClassVar[bool] = False

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Malformed(RemudaError):
    """Raised when a request cannot be read as what it should be; the caller corrects every named place."""

    code = "malformed"
    status = 400

    def __init__(self, sentence: str, problems: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(sentence)
        self.problems = tuple(problems)
        """Each place that is wrong, as a JSON pointer, and why; never what was sent."""


class Unauthenticated(RemudaError):
    """Raised when a request carries no credentials that hold; get a token and send it."""

    code = "unauthenticated"
    status = 401


class Forbidden(RemudaError):
    """Raised when the caller lacks a right; the sentence names it, for whoever can grant it."""

    code = "forbidden"
    status = 403


class Invalid(RemudaError):
    """Raised when an input breaks a rule; the caller corrects the named field."""

    code = "invalid"
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


class NotAllowed(RemudaError):
    """Raised when a path is known and the method is not; use one of those it has."""

    code = "method_not_allowed"
    status = 405

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__("the requested method was not allowed")
        self.allowed = tuple(allowed)


class TooSlow(RemudaError):
    """Raised when a request does not arrive in time; send it again, faster."""

    code = "too_slow"
    status = 408
    retry = True

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The request did not arrive within {limit_s:g} s: send it again, faster.")


class AlreadyExists(RemudaError):
    """Raised by a create whose name is taken; use the object that is there, or choose another name."""

    code = "already_exists"
    status = 409

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} already exists: use it, or choose another name.")
        self.kind, self.name = kind, name


class Conflict(RemudaError):
    """Raised when a write names a version or uid that is no longer the stored one; read again and redo the change."""

    code = "conflict"
    status = 409
    retry = True

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} has changed since it was read: read it again and redo the change.")
        self.kind, self.name = kind, name


class ReferenceRefused(RemudaError):
    """Raised when an object names a target that is absent or being deleted; point it at one that will stay."""

    code = "reference_refused"
    status = 409

    def __init__(self, kind: str, name: str, *, target_kind: str, target: str) -> None:
        super().__init__(
            f"The {kind} {name} cannot use the {target_kind} {target}, which is absent or being deleted: name another."
        )
        self.kind, self.name = kind, name
        self.target_kind, self.target = target_kind, target


class OwnerRefused(RemudaError):
    """Raised when a child is written under an owner that is absent or being deleted; choose a living owner."""

    code = "owner_refused"
    status = 409

    def __init__(self, kind: str, name: str, *, owner: str) -> None:
        super().__init__(
            f"The {kind} {name} cannot belong to {owner}, which is absent or being deleted: choose another owner."
        )
        self.kind, self.name, self.owner = kind, name, owner


class InFlight(RemudaError):
    """Raised when the same request, by its idempotency key, is being worked on; wait, then ask again."""

    code = "in_flight"
    status = 409
    retry = True

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"This Idempotency-Key is being worked on: send it again in {retry_after_s} s for the answer.")
        self.retry_after_s = retry_after_s


class AnswerNotKept(RemudaError):
    """Raised when a request was carried out under its idempotency key before, and its answer was not kept."""

    code = "answer_not_kept"
    status = 409

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key was carried out, and its answer, which may hold a secret, was not kept: "
            "read what it made, or ask anew under a new key."
        )


class Gone(RemudaError):
    """Raised when a watch asks for a version the change log no longer reaches; list, then watch from the list."""

    code = "gone"
    status = 410

    def __init__(self, kind: str, version: str) -> None:
        super().__init__(
            f"Changes of {kind} since version {version} are no longer known: "
            "list again, then watch from the version of that list."
        )
        self.kind, self.version = kind, version


class PreconditionFailed(RemudaError):
    """Raised when If-Match names another state than the present one; read again and decide anew."""

    code = "precondition_failed"
    status = 412

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"The {kind} {name} is not what If-Match says: read it again, then decide.")


class TooLarge(RemudaError):
    """Raised when a request is longer than we take; send less."""

    code = "too_large"
    status = 413

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"The {what} is longer than {limit} bytes: send less.")


class KeyReused(RemudaError):
    """Raised when an idempotency key comes with another request than before; use a new key for each request."""

    code = "key_reused"
    status = 422

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was used for another request: use a new key for each request.")


class TooMany(RemudaError):
    """Raised when a caller asks more often than it may; wait as long as it says."""

    code = "too_many"
    status = 429
    retry = True

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"Too many requests: wait {retry_after_s} s, then go on more slowly.")
        self.retry_after_s = retry_after_s


class Unavailable(RemudaError):
    """Raised when something needed does not work right now; wait a little and try again."""

    code = "unavailable"
    status = 503
    retry = True


class StorageFull(Unavailable):
    """Raised when a write finds no room on the disk; free some space, and writing goes on by itself."""

    code = "storage_full"

    def __init__(self, path: str) -> None:
        super().__init__(f"The disk that holds {path} is full: free some space, then try again.")
        self.path = path


class StorageFailing(Unavailable):
    """Raised when the disk refuses a read or a write; if it does not pass, look after the disk."""

    code = "storage_failing"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The disk failed while using {path} ({cause}): try again, and check the disk if it persists.")
        self.path, self.cause = path, cause


class TimedOut(Unavailable):
    """Raised when an answer is not ready in time; read first, because the work may well have been done."""

    code = "timed_out"

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The answer was not ready within {limit_s:g} s: read what became of it before trying again.")


class ServerUnreachable(Unavailable):
    """Raised when a server we depend on does not answer; try again, then check its address and the network."""

    code = "server_unreachable"

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(
            f"The server {server} cannot be reached ({cause}): try again, and check its address if it persists."
        )
        self.server, self.cause = server, cause


class OutcomeUnknown(Unavailable):
    """Raised when a write was sent and no answer came; read first, because it may well have happened."""

    code = "outcome_unknown"

    def __init__(self, what: str) -> None:
        super().__init__(f"No answer came to {what}, which may have happened or not: read before trying again.")
        self.what = what


class Unusable(RemudaError):
    """Raised when a store cannot be opened; waiting does not help, somebody has to act."""

    code = "unusable"
    status = 503


class StoreLocked(Unusable):
    """Raised when another process has the store open; stop that one, or choose another file."""

    code = "store_locked"

    def __init__(self, path: str) -> None:
        super().__init__(f"Another process has the store {path} open: stop it, or use another file.")
        self.path = path


class StoreDamaged(Unusable):
    """Raised when the content of a store contradicts itself; restore it from a backup."""

    code = "store_damaged"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The store {path} is damaged ({cause}): keep a copy of it and restore a backup.")
        self.path, self.cause = path, cause


class StoreTooNew(Unusable):
    """Raised when a later release has written the store; run that release or a newer one."""

    code = "store_too_new"

    def __init__(self, path: str, *, found: int, known: int) -> None:
        super().__init__(
            f"The store {path} has format {found}, and this release knows formats up to {known}: run a newer release."
        )
        self.path, self.found, self.known = path, found, known


class StoreForeign(Unusable):
    """Raised when the file is something else than a store of ours; it is left untouched, so name another."""

    code = "store_foreign"

    def __init__(self, path: str) -> None:
        super().__init__(f"The file {path} was not written by Remuda and is left as it is: name another file.")
        self.path = path


class StoreClosed(Unusable):
    """Raised when a store is used after it was closed, as by a request that outlives the process's shutdown."""

    code = "store_closed"

    def __init__(self, path: str) -> None:
        super().__init__(f"The store {path} is closed: open it again to use it.")


class StoreInaccessible(Unusable):
    """Raised when the system does not let us open or create the store; mend the path or its permissions."""

    code = "store_inaccessible"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The store {path} cannot be opened ({cause}): check the path and its permissions.")
        self.path, self.cause = path, cause


class Unreadable(RemudaError):
    """A stored document does not fit its type, as when somebody else wrote it or a field changed its meaning.

    Compare it with the kind's schema, and mend the document or restore it from a backup.
    """

    code = "unreadable"
    status = 500

    def __init__(self, kind: str, name: str, *, cause: str) -> None:
        super().__init__(f"The stored {kind} {name} cannot be read: {cause}. Mend the document to fit its schema.")


class Unsealable(RemudaError):
    """Raised when a sealed field does not open: its key is missing or wrong, or the field was altered or moved."""

    code = "unsealable"
    status = 500

    def __init__(self, key_id: str) -> None:
        super().__init__(
            f"A field sealed with key {key_id} does not open: "
            "put the key it was sealed with back into the key file, or set the field again."
        )
        self.key_id = key_id
