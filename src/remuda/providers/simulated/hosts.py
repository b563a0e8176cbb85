"""Hosts: how many servers of a flavor fit where, and how many are there."""

from dataclasses import dataclass, replace

from remuda.providers.contract.catalogue import Flavor
from remuda.providers.contract.errors import NoCapacity, Refused
from remuda.providers.simulated.catalogue import Catalogue
from remuda.providers.simulated.database import Storage


@dataclass(frozen=True, slots=True)
class HostsOfFlavors:
    """Places for servers."""

    storage: Storage

    def offer(self, catalogue: Catalogue) -> None:
        """Have the hosts that the catalogue says; on one that it no longer has, nothing new is placed."""
        self.storage.run("UPDATE hosts SET size = 0")
        for flavor in catalogue.flavors:
            hosts = catalogue.hosts[flavor.id]
            for number in range(1, hosts.count + 1):
                self.storage.run(
                    "INSERT INTO hosts (flavor, host, size) VALUES (?, ?, ?) "
                    "ON CONFLICT (flavor, host) DO UPDATE SET size = excluded.size",
                    (flavor.id, f"{catalogue.name}-{flavor.name}-{number:02d}", hosts.size),
                )
        self.storage.run("DELETE FROM hosts WHERE size = 0 AND used = 0")

    def with_free_places(self, flavor: Flavor) -> Flavor:
        """Return a flavor with the number of its servers that would still fit."""
        row = self.storage.row("SELECT sum(max(size - used, 0)) FROM hosts WHERE flavor = ?", (flavor.id,))
        return replace(flavor, free=row[0] or 0 if row else 0)

    def place(self, flavor: str, *, pinned: str = "", apart_from: str = "") -> str:
        """Take a place on the pinned host or on the emptiest one, and return its name, or raise NoCapacity."""
        if pinned:
            row = self.storage.row("SELECT used < size FROM hosts WHERE flavor = ? AND host = ?", (flavor, pinned))
            if row is None:
                raise Refused(f"no host {pinned} has servers of this flavor")
            host = pinned if row[0] else None
        else:
            row = self.storage.row(
                "SELECT host FROM hosts WHERE flavor = ? AND used < size AND host != ? ORDER BY used, host LIMIT 1",
                (flavor, apart_from),
            )
            host = row[0] if row else None
        if host is None:
            raise NoCapacity(f"the host {pinned}" if pinned else "this flavor")
        self.storage.run("UPDATE hosts SET used = used + 1 WHERE flavor = ? AND host = ?", (flavor, host))
        return str(host)

    def leave(self, flavor: str, host: str) -> None:
        """Give a place back."""
        self.storage.run("UPDATE hosts SET used = used - 1 WHERE flavor = ? AND host = ?", (flavor, host))
