"""Errors that callers can receive, in one tree.

::

    RemudaError
    ├── Malformed             400  the request cannot be read
    ├── Unauthenticated       401  the credentials are missing or invalid
    ├── OAuthError            400  an OAuth 2 error, also with status 401, 403, 500 or 503
    ├── Forbidden             403  the caller lacks a permission
    ├── Invalid               422  the input is wrong
    ├── InsufficientCapacity  422  no space is left at the moment
    ├── NotFound              404  there is no such object
    ├── NotAllowed            405  the path does not support the method
    ├── TooSlow               408  the request did not arrive in time               (retry)
    ├── AlreadyExists         409  the name is taken
    ├── Conflict              409  written from a stale version                     (retry)
    ├── ReferenceRejected     409  names something absent or being deleted
    ├── OwnerRejected         409  the owner is absent or being deleted
    ├── InFlight              409  the same request is being processed              (retry)
    ├── ResponseNotStored     409  processed before, and its response contained a secret
    ├── PlanRequired          409  the change is destructive and needs the hash of its plan
    ├── PlanChanged           409  the plan has changed
    ├── Gone                  410  the version is too old to watch from
    ├── PreconditionFailed    412  the object has changed since the caller read it
    ├── TooLarge              413  the request exceeds a size limit
    ├── KeyReused             422  the idempotency key belongs to another request
    ├── TooMany               429  too many requests                                (retry)
    ├── Unavailable           503  temporarily unavailable                          (retry)
    │   ├── StorageFull            the disk is full
    │   ├── StorageFailing         the disk fails
    │   ├── TimedOut               the response was not ready in time
    │   ├── ServerUnreachable      another server does not respond
    │   └── OutcomeUnknown         sent, but no response arrived
    ├── Unusable              503  the store cannot be opened
    │   ├── StoreLocked            another process has it open
    │   ├── StoreDamaged           its content is broken
    │   ├── StoreTooOld            an unreleased revision wrote it
    │   ├── StoreTooNew            a later release wrote it
    │   ├── StoreForeign           it is not a Remuda file
    │   ├── StoreClosed            it was closed while in use
    │   └── StoreInaccessible      the system denies access
    ├── Unreadable            500  a stored document does not match its kind
    ├── Unsealable            500  a sealed field does not open
    └── Inconsistent          500  there are none or several where there must be one

An error is raised with facts and formats its own message: the problem, then the remedy. ``code`` is stable and meant
for programs, ``status`` is the HTTP status, and ``retry`` says whether a retry, after following the message, can
succeed without a repair. No message contains a secret value.
"""

from remuda.kernel.errors.objects import (
    AlreadyExists,
    Conflict,
    Gone,
    Inconsistent,
    InsufficientCapacity,
    Invalid,
    NotFound,
    OwnerRejected,
    ReferenceRejected,
    RemudaError,
    Unreadable,
    Unsealable,
)
from remuda.kernel.errors.requests import (
    Forbidden,
    InFlight,
    KeyReused,
    Malformed,
    NotAllowed,
    OAuthError,
    PlanChanged,
    PlanRequired,
    PreconditionFailed,
    ResponseNotStored,
    TooLarge,
    TooMany,
    TooSlow,
    Unauthenticated,
)
from remuda.kernel.errors.unavailable import (
    OutcomeUnknown,
    ServerUnreachable,
    StorageFailing,
    StorageFull,
    StoreClosed,
    StoreDamaged,
    StoreForeign,
    StoreInaccessible,
    StoreLocked,
    StoreTooNew,
    StoreTooOld,
    TimedOut,
    Unavailable,
    Unusable,
)

__all__ = [
    "AlreadyExists",
    "Conflict",
    "Forbidden",
    "Gone",
    "InFlight",
    "Inconsistent",
    "InsufficientCapacity",
    "Invalid",
    "KeyReused",
    "Malformed",
    "NotAllowed",
    "NotFound",
    "OAuthError",
    "OutcomeUnknown",
    "OwnerRejected",
    "PlanChanged",
    "PlanRequired",
    "PreconditionFailed",
    "ReferenceRejected",
    "RemudaError",
    "ResponseNotStored",
    "ServerUnreachable",
    "StorageFailing",
    "StorageFull",
    "StoreClosed",
    "StoreDamaged",
    "StoreForeign",
    "StoreInaccessible",
    "StoreLocked",
    "StoreTooNew",
    "StoreTooOld",
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
