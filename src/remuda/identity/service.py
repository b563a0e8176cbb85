"""The identity service: its rooms, each with a port of its own.

Other services use the ports of the rooms, in this process or over HTTP; nothing else of identity is theirs to know.
"""

from dataclasses import dataclass

from remuda.identity.auditing.service import Auditing
from remuda.identity.login.facade import Browser
from remuda.identity.oauth.service import OAuth
from remuda.identity.operator.service import Operators
from remuda.identity.quotas.facade import Quotas
from remuda.identity.rbac.service import Rights
from remuda.identity.tenancy.facade import Tenancy
from remuda.identity.users.facade import People


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """All rooms."""

    tenancy: Tenancy
    people: People
    rights: Rights
    oauth: OAuth
    browser: Browser
    quotas: Quotas
    auditing: Auditing
    operators: Operators
