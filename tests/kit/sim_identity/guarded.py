"""What persons whom identity protects were given and promised, and what they must never get."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from remuda.identity.kinds.users import membership_id, user_id
from remuda.resources.conventions import ORGANIZATION
from tests.kit.sim_identity.snapshot import IdentitySnapshot

SUSPECT, CAREFUL, INVITED, INVITER = "suspect@far.test", "careful@far.test", "invited@far.test", "inviter@far.test"
PERSONS = (SUSPECT, CAREFUL, INVITED, INVITER)
SUSPENDED, FACTOR = ("suspended", "users_api", user_id(SUSPECT)), ("factor", "person", CAREFUL)


@dataclass(frozen=True, slots=True)
class Certainty:
    """What is surely the case, as long as it is as sure at a later look."""

    value: Hashable
    requests: int


@dataclass(slots=True)
class Credentials:
    """Tokens of a session."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    given: int
    """Moment at which the person had them."""


@dataclass(slots=True)
class GuardedHistory:
    """All of it."""

    requests: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Number of requests about a fact, from which follows whether it stayed as it was."""
    credentials: list[Credentials] = field(default_factory=list)
    """Those of the person who is suspended at times."""
    ended_before: int = 0
    """Moment at which a suspension was asked for that came true: it has ended all sessions of before."""
    app_keys: list[str] = field(default_factory=list)
    """Keys of authenticator apps that may be enrolled."""
    accepting: set[str] = field(default_factory=set)
    """Memberships whose invitation somebody has asked to accept."""
    approvals: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Organizations and their domains that may be proven: a platform administrator was asked for it so often."""
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many of these requests are over."""


def unconsented(history: GuardedHistory, organization: str) -> bool:
    """Tell whether the invited person has surely not agreed to be a member."""
    return membership_id(organization, user_id(INVITED)) not in history.accepting


def check_guarded(seen: IdentitySnapshot, history: GuardedHistory) -> None:
    """No invariant about invitations and domains is broken."""
    problems = [*_invitations(seen, history), *_domains(seen, history)]
    assert not problems, "; ".join(problems)


def _invitations(seen: IdentitySnapshot, history: GuardedHistory) -> Iterator[str]:
    for each in seen.user.values():
        organization = each.metadata.labels[ORGANIZATION]
        is_theirs = each.name == membership_id(organization, user_id(INVITED))
        if is_theirs and unconsented(history, organization) and not each.spec.invited:
            yield f"{INVITED} is a member of {organization} and was never asked"


def _domains(seen: IdentitySnapshot, history: GuardedHistory) -> Iterator[str]:
    for each in seen.domains.values():
        claim = (each.metadata.labels[ORGANIZATION], each.spec.domain)
        if each.is_proven and claim not in history.approvals:
            yield f"{claim} is proven, and nobody has approved it"
