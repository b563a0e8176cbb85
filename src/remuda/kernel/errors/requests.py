"""What is wrong with a request, whatever it is about."""

from collections.abc import Sequence
from typing import Any

from remuda.kernel.errors.objects import RemudaError

# ruff: noqa: N818  these names are read as what happened; "Error" at the end of each would add nothing


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


class OAuthRefusal(RemudaError):
    """Raised by the endpoints of OAuth2, which refuse in words of their own; `error` is one of those of the standard.

    The description is for people, as every sentence here; `headers` tell for example how a client shows who it is.
    """

    code = "oauth_refused"
    status = 400

    def __init__(
        self, error: str, description: str, status: int = 400, *, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(description)
        self.error, self.status = error, status
        self.headers = tuple(headers)


class Forbidden(RemudaError):
    """Raised when the caller lacks a right; the sentence names it, for whoever can grant it."""

    code = "forbidden"
    status = 403


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


class PlanRequired(RemudaError):
    """Raised by a change that destroys something where its plan is demanded; look at the plan, then send its hash."""

    code = "plan_required"
    status = 409

    def __init__(self, plan: Any) -> None:
        super().__init__(
            "This change destroys something, and has to carry the hash of its plan: "
            "look at the plan, and send its hash as the parameter plan if that is what you want."
        )
        self.plan = plan
        """As it goes into the body."""


class PlanChanged(RemudaError):
    """Raised when a change carries another plan than the present one; look at this one, then decide anew."""

    code = "plan_changed"
    status = 409

    def __init__(self, plan: Any) -> None:
        super().__init__(
            "The plan of this change is another one now: look at it, and send its hash if that is what you want."
        )
        self.plan = plan
        """As it goes into the body."""


class PreconditionFailed(RemudaError):
    """Raised when If-Match, or what is used like it, names another state than the present one; read and decide anew."""

    code = "precondition_failed"
    status = 412

    def __init__(self, kind: str, name: str, *, told: str = "If-Match") -> None:
        super().__init__(f"The {kind} {name} is not what {told} says: read it again, then decide.")


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
