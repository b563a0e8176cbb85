"""Errors about a request, independent of its object."""

from collections.abc import Sequence
from typing import Any

from remuda.kernel.errors.objects import RemudaError

# ruff: noqa: N818  the names say what happened; the suffix "Error" would add nothing


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

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"Too many requests: wait {retry_after_s} s, then send fewer.")
        self.retry_after_s = retry_after_s
