"""Bugs that somebody might make in identity, each to be found by the invariants."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from remuda.identity.factors.service import Authenticators
from remuda.identity.kinds.quotas import Amounts, Intent, QuotaSpec
from remuda.identity.kinds.users import OrganizationUser, User
from remuda.identity.login.browser_sessions import BrowserLogins
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.second_factor import SecondFactorStep
from remuda.identity.quotas import intents as settling
from remuda.identity.quotas import quota_state as heads
from remuda.identity.quotas.controller import QuotaRecordController
from remuda.identity.quotas.quota_state import minus
from remuda.identity.rbac import acl
from remuda.identity.tenancy.controller import ProjectController
from remuda.identity.tenancy.domain_proofs import DomainProofController
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import Sessions
from remuda.identity.users import rules
from remuda.identity.users import service as user_views
from remuda.identity.users.controller import GroupController
from remuda.operations.recovery import OperationRecovery
from remuda.reconcile.results import Done

_settled = heads.with_intent_completed


async def _nothing(*_arguments: object, **_options: object) -> None:
    """Do nothing where something should be done."""


def _always(*, answer: Any) -> Any:
    """Return a method that always gives this answer."""

    async def give(*_arguments: object, **_options: object) -> Any:
        return answer

    return give


def _subtracted_twice(spec: QuotaSpec, intent: Intent, left: Amounts) -> QuotaSpec:
    after = _settled(spec, intent, left)
    if left or after == spec:
        return after
    return msgspec.structs.replace(after, totals=minus(after.totals, intent.amounts))


_new_membership = rules.new_membership


def _entered(*arguments: Any, **options: Any) -> OrganizationUser:
    """Return a membership to which nobody has to agree."""
    return _new_membership(*arguments, **{**options, "invited": False})


async def _all(_store: object, memberships: Sequence[OrganizationUser], _email: str) -> Sequence[OrganizationUser]:
    """Let every membership count."""
    return memberships


PLANTED: Mapping[str, tuple[object, str, Any]] = {
    "what is released is subtracted twice": (settling, "with_intent_completed", _subtracted_twice),
    "nobody writes down that a row is confirmed": (settling, "confirmed", lambda row: row),
    "what was begun in the ledger is never ended": (QuotaRecordController, "_expire_next", _always(answer=False)),
    "more is taken than there may be": (heads, "check_limits", lambda *_, **__: None),
    "a project goes while something is held in it": (ProjectController, "deprovision", _always(answer=Done())),
    "what crashed is never undone": (OperationRecovery, "recover", _nothing),
    "a group keeps whoever is gone": (GroupController, "__call__", _always(answer=Done())),
    "an account is shown a token that nobody stores": (rules, "rotated", lambda account, *_: account),
    "nobody looks at what was revoked": (Tokens, "find_revocation", _always(answer=False)),
    "a session goes on after its refresh token came twice": (Sessions, "end", _nothing),
    "whoever logs out is still logged in": (BrowserLogins, "end", _nothing),
    "every password is right": (Passwords, "verify", _always(answer=True)),
    "whoever is suspended goes on": (User, "is_active", property(lambda user: user.spec.state == "active")),
    "what a suspension has ended comes back": (BrowserLogins, "end_all", _nothing),
    "a password is enough": (SecondFactorStep, "due_challenge", _nothing),
    "every code is right": (Authenticators, "verify_code", _always(answer=True)),
    "roles need no second factor": (acl, "meets_policy", lambda *_: True),
    "whoever is invited is a member": (rules, "new_membership", _entered),
    "an invitation gives permissions": (acl, "agreed", _all),
    "an invitation shows the person": (user_views, "is_agreed", _always(answer=True)),
    "every domain is proven": (DomainProofController, "_find_record", _always(answer="present")),
}
"""What is replaced, and by what."""
