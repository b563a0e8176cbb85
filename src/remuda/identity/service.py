"""The identity service: its rooms, each with a port of its own.

Other services use the ports of the rooms, in this process or over HTTP; nothing else of identity is theirs to know.
"""

from dataclasses import dataclass

from remuda.identity.auditing.service import Auditing
from remuda.identity.login.service import Browser
from remuda.identity.oauth.service import OAuth
from remuda.identity.operator.service import Operators
from remuda.identity.people.service import People
from remuda.identity.quotas.service import Quotas
from remuda.identity.rights.service import Rights
from remuda.identity.tenancy.service import Tenancy


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
