"""Everybody who could call identity, with the permissions that hold in the end, written by hand from the reference
(4.2).

A service that impersonates has what is both in its own role and in the permissions of the one it acts for (3.8).
"""

from collections.abc import Mapping

from tests.kit.proofs.authorization.identity_roles import (
    ADMINISTRATOR,
    AUDITOR,
    PLATFORM_ADMINISTRATOR,
    PLATFORM_READER,
    SERVICES,
    USER,
    USER_IN_PROJECT,
)
from tests.kit.proofs.authorization.matrix import ABROAD, HOME, NEXT_DOOR, NONE, Caller, PermissionSet, Scope

_HERE, _THERE = HOME.organization, ABROAD.organization
_REGION = Caller(name="unikorn-region", sort="system", everywhere=SERVICES["unikorn-region"])
_COMPUTE = Caller(name="unikorn-compute", sort="system", everywhere=SERVICES["unikorn-compute"])


def _as(
    whom: str,
    own: Caller = _REGION,
    *,
    everywhere: PermissionSet = NONE,
    organizations: Mapping[str, PermissionSet] | None = None,
    projects: Mapping[Scope, PermissionSet] | None = None,
) -> Caller:
    return Caller(
        name=f"{own.name} as {whom}",
        sort="system",
        own=own,
        acts_for=whom,
        impersonates=True,
        everywhere=everywhere & own.everywhere,
        organizations={name: held & own.everywhere for name, held in (organizations or {}).items()},
        projects={place: held & own.everywhere for place, held in (projects or {}).items()},
    )


STRANGERS = tuple(
    Caller(name=name, is_known=False) for name in ("anonymous", "forged", "expired", "revoked", "suspended")
)
"""Nobody at all, or nobody any more."""

MEMBERS = (
    Caller(name="nobody"),
    Caller(name="suspended here"),
    Caller(name="member", organizations={_HERE: NONE}),
    Caller(name="administrator", organizations={_HERE: ADMINISTRATOR}),
    Caller(name="auditor", organizations={_HERE: AUDITOR}),
    Caller(name="user", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    Caller(name="reader", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    Caller(name="neighbour", organizations={_HERE: USER}, projects={NEXT_DOOR: USER_IN_PROJECT}),
    Caller(name="foreigner", organizations={_THERE: ADMINISTRATOR}),
    Caller(
        name="reader here and administrator there",
        organizations={_HERE: USER, _THERE: ADMINISTRATOR},
        projects={HOME: USER_IN_PROJECT},
    ),
)

OPERATORS = (
    Caller(name="platform-administrator", everywhere=PLATFORM_ADMINISTRATOR),
    Caller(name="platform-reader", everywhere=PLATFORM_READER),
)

ACCOUNTS = (
    Caller(name="account", sort="account", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    Caller(name="administrating account", sort="account", organizations={_HERE: ADMINISTRATOR}),
    Caller(name="foreign account", sort="account", organizations={_THERE: ADMINISTRATOR}),
    Caller(name="idle account", sort="account"),
)

_PROVEN = (
    *(Caller(name=f"{name} for user", sort="system", everywhere=held, own=Caller(name=name), acts_for="user")
      for name, held in SERVICES.items()),
    Caller(name="unikorn-region for foreigner", sort="system", everywhere=_REGION.everywhere, own=_REGION, acts_for="foreigner"),  # noqa: E501  a row is read on one line
    Caller(name="unikorn-region by assertion", sort="system", everywhere=_REGION.everywhere),
)  # fmt: skip

SERVICE_CALLERS = (
    *_PROVEN,
    _as("user", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    _as("reader", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    _as("member", organizations={_HERE: NONE}),
    _as("administrator", organizations={_HERE: ADMINISTRATOR}),
    _as("foreigner", organizations={_THERE: ADMINISTRATOR}),
    _as("nobody"),
    _as("account", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    _as("platform-administrator", everywhere=PLATFORM_ADMINISTRATOR),
    _as("platform-administrator", own=_COMPUTE, everywhere=PLATFORM_ADMINISTRATOR),
    _as("platform-reader", everywhere=PLATFORM_READER),
)

CALLERS = (*STRANGERS, *MEMBERS, *OPERATORS, *ACCOUNTS, *SERVICE_CALLERS)
