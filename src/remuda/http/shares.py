"""Shares of a limited resource: who holds how much of it, and who may have more.

A use counts for all of its holders. An organization and a site (an IPv4 address, or an IPv6 /48 network) may hold a
quarter each, a caller and an IPv6 /64 network an eighth each. A quarter of the resource is reserved for organizations
that hold no more than `least`, and for sites where the organization is not known, so a few of them together cannot have
all. Up to `least` an organization needs no share of its site either, which it may have in common with others.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from remuda.access.principal import Principal
from remuda.http.ratelimit import SITE_BITS, client_network

Level = Literal["organization", "site", "principal", "address"]
LEVELS: dict[Level, int] = {"organization": 4, "site": 4, "principal": 8, "address": 8}
"""The divisor of the share that one holder of a level may have."""
_RESERVED = 4


class Holder(NamedTuple):
    """One of those for whom a use counts."""

    level: Level
    name: str


Holders = tuple[Holder, ...]
"""The holders of one use. The first is the one that decides about the reserve; none stand for an unknown client."""


class OverShare(Exception):  # noqa: N818  the name states what happened
    """Raised when a holder would have more than its share."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(holder)
        self.holder = holder


class NoneFree(Exception):  # noqa: N818  same
    """Raised when others hold all that this use may have."""


class Shares:
    """The shares of one resource."""

    def __init__(self, limit: int, *, least: int) -> None:
        """Take the amount of the resource, and that which one organization or site gets from the reserve."""
        self._limit, self._least, self._common = limit, least, limit - limit // _RESERVED
        self._share = {level: max(least, limit // divisor) for level, divisor in LEVELS.items()}
        self._used: dict[Holder, int] = {}
        self.total = 0
        """The amount that is held."""

    def used(self, holder: Holder) -> int:
        return self._used.get(holder, 0)

    def share(self, level: Level) -> int:
        """Return the largest amount for one holder of a level."""
        return self._share[level]

    def check(self, holders: Sequence[Holder], amount: int) -> None:
        """Raise OverShare or NoneFree unless the holders may have a further amount."""
        most = self._common
        if holders and self.used(holders[0]) + amount <= self._least:
            most = self._limit
        else:
            for holder in holders:
                if self.used(holder) + amount > self._share[holder.level]:
                    raise OverShare(holder)
        if self.total + amount > most:
            raise NoneFree

    def take(self, holders: Sequence[Holder], amount: int) -> None:
        """Count an amount for each of these holders, or raise OverShare or NoneFree."""
        self.check(holders, amount)
        self.total += amount
        for holder in holders:
            self._used[holder] = self.used(holder) + amount

    def release(self, holders: Sequence[Holder], amount: int) -> None:
        """Free an amount that was counted for these holders."""
        self.total -= amount
        for holder in holders:
            left = self._used[holder] - amount
            if left:
                self._used[holder] = left
            else:
                del self._used[holder]

    def holders(self, principal: Principal, host: str) -> Holders:
        """Return the holders of a use by a caller at a host, which is empty if it is unknown.

        A member of several organizations counts for the one that holds least: else each of them could keep its members
        from their work in the others.
        """
        if not principal.caller:
            return holders_at(host)
        organizations = [Holder("organization", name) for name in _organizations(principal)]
        return min(organizations, key=self.used), Holder("principal", principal.caller), *holders_at(host)


def holders_at(host: str) -> Holders:
    """Return the holders that stand for a host: its site, and its network if that is smaller."""
    if not host:
        return ()
    site, network = client_network(host, bits=SITE_BITS), client_network(host)
    return (Holder("site", site),) if site == network else (Holder("site", site), Holder("address", network))


def _organizations(principal: Principal) -> Collection[str]:
    """Return the names that a caller is counted under as an organization.

    Services and administrators of the platform count alone. All who belong to no organization count as one.
    """
    if principal.type == "system" or principal.access.everywhere:
        return (f"of {principal.caller}",)
    return principal.organizations or ("",)
