"""Errors of OpenStack, and what each kind of failure becomes.

=====================  ==============================================================================================
Response               Error
=====================  ==============================================================================================
none, or late          ConnectionError: a write has an unknown outcome, and its effect must be looked up
refused connection     ServerUnreachable: nothing was sent
401                    Unavailable, after one attempt with a new token
403                    Denied, or QuotaUsedUp if the service says so
409, 413 for a quota   QuotaUsedUp, whose reason is logged for the operator
404, 409, other 4xx    ApiError, which the caller maps
413, 429, 503 with     Unavailable, and nothing is sent to that service until the time of Retry-After
Retry-After, any 429
5xx                    Unavailable for a read, and otherwise ConnectionError: the request may have taken effect
=====================  ==============================================================================================
"""

import httpx2
import msgspec

from remuda.kernel.errors import Unavailable
from remuda.providers.contract.common import NoCapacity, Rejected

FORBIDDEN, TOO_LARGE = 403, 413

_LONGEST_REASON = 300


class ApiError(Rejected):
    """Raised for a response that denies a request; callers map the statuses that they expect."""

    def __init__(self, service: str, status: int, reason: str, kind: str = "") -> None:
        super().__init__(reason or f"{service} responded with status {status}")
        self.service, self.http_status, self.reason = service, status, reason
        self.kind = kind
        """Type of the error, which Neutron alone has."""


class QuotaUsedUp(NoCapacity):
    """Raised when the quota of a project at the cloud is used up: its reason is for the operator, and is logged."""

    def __init__(self) -> None:
        super().__init__("this at the provider, whose operator has been told")


class Denied(ApiError):  # noqa: N818  what happened, like the errors of the contract
    """Raised for a request that a policy of the cloud does not allow to this login."""


class LoginRejected(Unavailable):
    """Raised when the cloud does not accept a user, password, domain or project; correct the region's credential."""

    def __init__(self, auth_url: str) -> None:
        super().__init__(
            f"The cloud {auth_url} does not accept the credential of this region:"
            " its operator has to set another user, password or domain."
        )


class NoIdentityService(Unavailable):
    """Raised when an address is not that of Keystone; correct the region's address."""

    def __init__(self, auth_url: str, status: int) -> None:
        super().__init__(
            f"The address {auth_url} is not that of an identity service of OpenStack (status {status}):"
            " its operator has to set one such as https://cloud.example/identity/v3."
        )


def is_about_quota(status: int, kind: str, reason: str) -> bool:
    """Return whether a quota is used up, which each service says in another way."""
    text = reason.lower()  # a policy line about quotas names them, too
    return kind == "OverQuota" or (status in {FORBIDDEN, TOO_LARGE} and "quota" in text and "policy" not in text)


def reason_of(response: httpx2.Response) -> tuple[str, str]:
    """Return the type and the message of an error response: every service wraps them in another way."""
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "", ""
    parts = [body, *body.values()] if isinstance(body, dict) else []
    for part in parts:
        for name in ("message", "faultstring", "detail"):
            if isinstance(part, dict) and isinstance(part.get(name), str):
                return str(part.get("type", "")), str(part[name])[:_LONGEST_REASON].rstrip(". \n")
    return "", ""
