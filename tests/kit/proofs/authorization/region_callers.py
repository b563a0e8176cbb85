"""Everybody who could call region, with the permissions that hold in the end, written by hand from the reference (4.2).

They are the callers of identity's matrix, so that the same users can be made for both. A service that impersonates has
what is both in its own role and in the permissions of the one it acts for (3.8).
"""

from collections.abc import Mapping

from tests.kit.proofs.authorization.matrix import ABROAD, HOME, NEXT_DOOR, NONE, Caller, PermissionSet, Scope
from tests.kit.proofs.authorization.region_roles import (
    ADMINISTRATOR,
    AUDITOR,
    PLATFORM_ADMINISTRATOR,
    PLATFORM_READER,
    READER,
    READER_IN_PROJECT,
    SERVICES,
    USER,
    USER_IN_PROJECT,
)

_HERE, _THERE = HOME.organization, ABROAD.organization
_SERVICES = {name: Caller(name=name, sort="system", everywhere=held) for name, held in SERVICES.items()}


def _as(
    whom: str,
    own: str = "unikorn-compute",
    *,
    everywhere: PermissionSet = NONE,
    organizations: Mapping[str, PermissionSet] | None = None,
    projects: Mapping[Scope, PermissionSet] | None = None,
) -> Caller:
    service = _SERVICES[own]
    return Caller(
        name=f"{own} as {whom}",
        sort="system",
        own=service,
        acts_for=whom,
        impersonates=True,
        everywhere=everywhere & service.everywhere,
        organizations={name: held & service.everywhere for name, held in (organizations or {}).items()},
        projects={place: held & service.everywhere for place, held in (projects or {}).items()},
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
    Caller(name="reader", organizations={_HERE: READER}, projects={HOME: READER_IN_PROJECT}),
    Caller(name="neighbour", organizations={_HERE: USER}, projects={NEXT_DOOR: USER_IN_PROJECT}),
    Caller(name="foreigner", organizations={_THERE: ADMINISTRATOR}),
    Caller(
        name="reader here and administrator there",
        organizations={_HERE: READER, _THERE: ADMINISTRATOR},
        projects={HOME: READER_IN_PROJECT},
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

SERVICE_CALLERS = (
    *(
        Caller(name=f"{name} for user", sort="system", everywhere=own.everywhere, own=own, acts_for="user")
        for name, own in _SERVICES.items()
    ),
    Caller(
        name="unikorn-compute for foreigner",
        sort="system",
        everywhere=SERVICES["unikorn-compute"],
        own=_SERVICES["unikorn-compute"],
        acts_for="foreigner",
    ),
    Caller(name="unikorn-region by assertion", sort="system", everywhere=SERVICES["unikorn-region"]),
    _as("user", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    _as("reader", organizations={_HERE: READER}, projects={HOME: READER_IN_PROJECT}),
    _as("member", organizations={_HERE: NONE}),
    _as("administrator", organizations={_HERE: ADMINISTRATOR}),
    _as("foreigner", organizations={_THERE: ADMINISTRATOR}),
    _as("nobody"),
    _as("account", organizations={_HERE: USER}, projects={HOME: USER_IN_PROJECT}),
    _as("platform-administrator", everywhere=PLATFORM_ADMINISTRATOR),
    _as("platform-reader", everywhere=PLATFORM_READER),
    _as("platform-administrator", "unikorn-kubernetes", everywhere=PLATFORM_ADMINISTRATOR),
    _as("platform-administrator", "uni-storage", everywhere=PLATFORM_ADMINISTRATOR),
    _as("administrator", "unikorn-region", organizations={_HERE: ADMINISTRATOR}),
)

CALLERS = (*STRANGERS, *MEMBERS, *OPERATORS, *ACCOUNTS, *SERVICE_CALLERS)
