"""Bugs that somebody might make in identity, each to be found by the invariants."""

from collections.abc import Mapping
from typing import Any

import msgspec

from remuda.identity.kinds.quotas import Amounts, Intent, QuotaSpec
from remuda.identity.login.browser_sessions import BrowserLogins
from remuda.identity.login.passwords import Passwords
from remuda.identity.quotas import intents as settling
from remuda.identity.quotas import quota_state as heads
from remuda.identity.quotas.controller import QuotaRecordController
from remuda.identity.quotas.quota_state import minus
from remuda.identity.tenancy.controller import ProjectController
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import Sessions
from remuda.identity.users import rules
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
}
"""What is replaced, and by what."""
