import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from remuda.kernel import errors
from remuda.kernel.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Inconsistent,
    InFlight,
    InsufficientCapacity,
    Invalid,
    KeyReused,
    Malformed,
    NotAllowed,
    NotFound,
    OAuthError,
    OutcomeUnknown,
    OwnerRejected,
    PlanChanged,
    PlanRequired,
    PreconditionFailed,
    ReferenceRejected,
    RemudaError,
    ResponseNotStored,
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
    TooLarge,
    TooMany,
    TooManyObjects,
    TooSlow,
    Unauthenticated,
    Unavailable,
    Unreadable,
    Unsealable,
    Unusable,
)

WIRE: list[tuple[RemudaError, str, int, bool]] = [
    (Malformed("the request body is missing or malformed"), "malformed", 400, False),
    (Unauthenticated("authorization header missing"), "unauthenticated", 401, False),
    (Forbidden("operation is not allowed by rbac"), "forbidden", 403, False),
    (NotAllowed(["GET"]), "method_not_allowed", 405, False),
    (OAuthError("invalid_grant", "code is not valid"), "oauth_error", 400, False),
    (OAuthError("invalid_client", "client is not known", 401), "oauth_error", 401, False),
]
"""Errors whose sentences are the wire contract's, and not for us to choose."""

EXAMPLES: list[tuple[RemudaError, str, int, bool]] = [
    *WIRE,
    (Invalid("spec.size", "is negative", remedy="use zero or more"), "invalid", 422, False),
    (
        InsufficientCapacity("flavorId", "has no free place", remedy="choose another"),
        "insufficient_capacity",
        422,
        False,
    ),
    (TooManyObjects("networks", scope="project", limit=3), "too_many_objects", 403, False),
    (NotFound("Network", "n1"), "not_found", 404, False),
    (AlreadyExists("Network", "n1"), "already_exists", 409, False),
    (Conflict("Network", "n1"), "conflict", 409, True),
    (
        ReferenceRejected("Server", "s1", target_kind="Network", target="n1"),
        "reference_rejected",
        409,
        False,
    ),
    (OwnerRejected("Server", "s1", owner="i1"), "owner_rejected", 409, False),
    (Gone("Network", "17"), "gone", 410, False),
    (Unavailable("The store is starting: try again in a moment."), "unavailable", 503, True),
    (StorageFull("/data/a.db"), "storage_full", 503, True),
    (StorageFailing("/data/a.db", "input/output error"), "storage_failing", 503, True),
    (ServerUnreachable("https://k8s", "connection refused"), "server_unreachable", 503, True),
    (OutcomeUnknown("the create of Network n1"), "outcome_unknown", 503, True),
    (TooSlow(10), "too_slow", 408, True),
    (InFlight(1), "in_flight", 409, True),
    (ResponseNotStored(), "response_not_stored", 409, False),
    (PlanRequired({}), "plan_required", 409, False),
    (PlanChanged({}), "plan_changed", 409, False),
    (PreconditionFailed("Network", "n1"), "precondition_failed", 412, False),
    (TooLarge("body", 1024), "too_large", 413, False),
    (KeyReused(), "key_reused", 422, False),
    (TooMany(3), "too_many", 429, True),
    (TimedOut(30), "timed_out", 503, True),
    (Unusable("The store has no schema: create it again."), "unusable", 503, False),
    (StoreLocked("/data/a.db"), "store_locked", 503, False),
    (StoreClosed("/data/a.db"), "store_closed", 503, False),
    (StoreDamaged("/data/a.db", "page 3"), "store_damaged", 503, False),
    (StoreTooOld(Path("/data/a.db"), found=1, known=2), "store_too_old", 503, False),
    (StoreTooNew(Path("/data/a.db"), found=9, known=2), "store_too_new", 503, False),
    (StoreForeign("/data/a.db"), "store_foreign", 503, False),
    (StoreInaccessible("/data/a.db", "permission denied"), "store_inaccessible", 503, False),
    (Unreadable("Server", "s1", cause="Expected `str`"), "unreadable", 500, False),
    (Unsealable("k1"), "unsealable", 500, False),
    (Inconsistent("Mount", "a", part="horse", found=2), "inconsistent", 500, False),
]


def family(root: type[RemudaError]) -> Iterator[type[RemudaError]]:
    """Yield the tree as the kernel has it; a layer above may add facts to an error of its own."""
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from family(child)


@pytest.mark.parametrize(("error", "code", "status", "retry"), EXAMPLES)
def test_each_error_has_its_code_status_and_retry_class(
    error: RemudaError, code: str, status: int, *, retry: bool
) -> None:
    assert (error.code, error.status, error.retry) == (code, status, retry)


@pytest.mark.parametrize("error", [example[0] for example in EXAMPLES if example not in WIRE])
def test_each_error_says_one_sentence_with_a_remedy(error: RemudaError) -> None:
    assert str(error) == error.message
    assert re.fullmatch(r"[^\n]+: [^\n]+\.", error.message)


def test_the_examples_are_the_whole_tree() -> None:
    assert {type(example[0]) for example in EXAMPLES} == set(family(RemudaError)) - {RemudaError}
    assert set(errors.ERRORS) == set(family(RemudaError))


def test_codes_are_unique() -> None:
    codes = [error.code for error in family(RemudaError)]
    assert len(set(codes)) == len(codes)


def test_every_class_has_a_docstring_that_explains_it() -> None:
    for error in family(RemudaError):
        assert error.__doc__


def test_an_error_keeps_its_facts() -> None:
    error = ReferenceRejected("Server", "s1", target_kind="Network", target="n1")
    assert (error.kind, error.name, error.target_kind, error.target) == ("Server", "s1", "Network", "n1")
    assert Invalid("tag", "is empty", remedy="name it").field == "tag"
    assert Malformed("no", [("/a", "is odd")]).problems == (("/a", "is odd"),)
    assert NotAllowed(["GET", "PUT"]).allowed == ("GET", "PUT")
    assert (InFlight(2).retry_after_s, TooMany(3).retry_after_s) == (2, 3)
    assert str(Invalid("tag", "is empty", remedy="name it")) == "tag is empty: name it."
    assert str(Invalid("tag", "tags are full")) == "tags are full"
