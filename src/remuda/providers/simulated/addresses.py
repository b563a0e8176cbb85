"""Addresses: on a network each is given once, and public ones come from the pool, the first free one."""

import ipaddress
from dataclasses import dataclass

from remuda.kernel.errors import AlreadyExists
from remuda.providers.contract.common import Handle
from remuda.providers.contract.errors import NoCapacity, Refused
from remuda.providers.contract.networks import Network
from remuda.providers.simulated.catalogue import Catalogue
from remuda.providers.simulated.database import Storage


@dataclass(frozen=True, slots=True)
class Addresses:
    """Who has which address."""

    storage: Storage

    def offer(self, catalogue: Catalogue) -> None:
        """Fill the pool as the catalogue says; an address that is no longer offered stays with whoever has it."""
        wanted = [
            str(address) for prefix in catalogue.public_addresses for address in ipaddress.IPv4Network(prefix).hosts()
        ]
        offered = self.storage.rows("SELECT address FROM public_addresses WHERE is_offered ORDER BY position")
        if [address for (address,) in offered] == wanted:
            return
        self.storage.run("UPDATE public_addresses SET is_offered = 0")
        for address in wanted:
            self.storage.run(
                "INSERT INTO public_addresses (address, is_offered) VALUES (?, 1) "
                "ON CONFLICT (address) DO UPDATE SET is_offered = 1",
                (address,),
            )

    def take(self, network: Network, address: str, holder: Handle) -> None:
        """Give an address of a network to a port or load balancer, or raise AlreadyExists if it is taken."""
        try:
            is_inside = ipaddress.IPv4Address(address) in ipaddress.IPv4Network(network.spec.prefix)
        except ValueError:
            is_inside = False
        if not is_inside:
            raise Refused(f"{address} is no address of the network {network.spec.handle.name}")
        given = self.storage.run(
            "INSERT OR IGNORE INTO addresses VALUES (?, ?, ?, ?)",
            (holder.tenancy, network.spec.handle.name, address, holder.name),
        )
        if not given:
            raise AlreadyExists("address", address)

    def give_back(self, tenancy: str, network: str, address: str) -> None:
        """Let an address of a network be given again."""
        self.storage.run(
            "DELETE FROM addresses WHERE tenancy = ? AND network = ? AND address = ?", (tenancy, network, address)
        )

    def public_address(self, holder: Handle) -> str:
        """Return the public address that somebody has, or nothing."""
        row = self.storage.row(
            "SELECT address FROM public_addresses WHERE tenancy = ? AND holder = ?", (holder.tenancy, holder.name)
        )
        return "" if row is None else str(row[0])

    def converge_public(self, holder: Handle, *, is_wanted: bool) -> str:
        """Give somebody a public address, or take it away; return it. Raise NoCapacity if the pool is empty."""
        present = self.public_address(holder)
        if is_wanted and not present:
            row = self.storage.row(
                "UPDATE public_addresses SET tenancy = ?, holder = ? WHERE position = ("
                "SELECT position FROM public_addresses WHERE holder IS NULL AND is_offered ORDER BY position LIMIT 1"
                ") RETURNING address",
                (holder.tenancy, holder.name),
            )
            if row is None:
                raise NoCapacity("a public address")
            return str(row[0])
        if present and not is_wanted:
            self.storage.run(
                "UPDATE public_addresses SET tenancy = NULL, holder = NULL WHERE tenancy = ? AND holder = ?",
                (holder.tenancy, holder.name),
            )
            return ""
        return present
