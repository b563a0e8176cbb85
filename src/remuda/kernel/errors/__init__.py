"""Every error a caller may meet, in one tree.

::

    RemudaError
    ├── Malformed             400  the request cannot be read
    ├── Unauthenticated       401  nobody we know asks
    ├── OAuthRefusal          400  refused in the words of OAuth2, or 401, 403, 500, 503
    ├── Forbidden             403  the caller may not do this
    ├── Invalid               422  the input is wrong
    ├── NoRoom                422  fits nowhere now
    ├── NotFound              404  there is no such object
    ├── NotAllowed            405  the path knows no such method
    ├── TooSlow               408  the request did not arrive in time               (retry)
    ├── AlreadyExists         409  the name is taken
    ├── Conflict              409  written from a stale version                     (retry)
    ├── ReferenceRefused      409  names something absent or being deleted
    ├── OwnerRefused          409  the owner is absent or being deleted
    ├── InFlight              409  the same request is being worked on              (retry)
    ├── AnswerNotKept         409  done already, and its answer held a secret
    ├── PlanRequired          409  destroys something, and has to carry its plan
    ├── PlanChanged           409  carries another plan than the present one
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
    ├── Unsealable            500  a sealed field does not open
    └── Inconsistent          500  what there must be one of is not there, or several times

An error is raised with facts and writes its own sentence: what happened, then what to do about it. ``code`` is stable
and meant for programs, ``status`` is the HTTP answer, and ``retry`` says whether trying again, after whatever the
sentence asks for, can succeed while nobody repairs anything. No sentence ever holds a secret value.
"""

from remuda.kernel.errors.objects import (
    AlreadyExists,
    Conflict,
    Gone,
    Inconsistent,
    Invalid,
    NoRoom,
    NotFound,
    OwnerRefused,
    ReferenceRefused,
    RemudaError,
    Unreadable,
    Unsealable,
)
from remuda.kernel.errors.requests import (
    AnswerNotKept,
    Forbidden,
    InFlight,
    KeyReused,
    Malformed,
    NotAllowed,
    OAuthRefusal,
    PlanChanged,
    PlanRequired,
    PreconditionFailed,
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
    TimedOut,
    Unavailable,
    Unusable,
)

__all__ = [
    "AlreadyExists",
    "AnswerNotKept",
    "Conflict",
    "Forbidden",
    "Gone",
    "InFlight",
    "Inconsistent",
    "Invalid",
    "KeyReused",
    "Malformed",
    "NoRoom",
    "NotAllowed",
    "NotFound",
    "OAuthRefusal",
    "OutcomeUnknown",
    "OwnerRefused",
    "PlanChanged",
    "PlanRequired",
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
