"""What customers asked of region and what they were told, and what was done to the clouds behind its back."""

from tests.kit.region.environment import UBUNTU
from tests.kit.sim_identity.history import THERE, IdentityHistory

KINDS = ("network", "group", "balancer", "server", "authority", "storage")
"""What customers make in a project."""
IMAGES = (UBUNTU, "b1f0c0de-0001-4000-8000-000000000001")
"""What servers are made of, but for the customers' own images."""
Thing = tuple[str, str]
"""Something by its kind and id."""


class RegionHistory(IdentityHistory):
    """All of it. What something goes with is its network, and its project."""

    def __init__(self) -> None:
        super().__init__()
        self.homes: dict[Thing, tuple[Thing, ...]] = {}
        """What something goes with."""
        self.regions: dict[str, str] = {}
        """Where networks and storages are, by their ids."""
        self.disturbed: set[str] = set()
        """Servers at a cloud that somebody broke or removed there, by name."""
        self.abandoned: set[str] = set()
        """What operators may have released without what it has at its cloud, by uid."""
        self.private_keys: set[str] = set()
        """What nobody may read in a log or a file."""

    def put(self, thing: Thing, *homes: Thing) -> None:
        """Remember what something goes with; what its network goes with is one of these."""
        further = tuple(each for home in homes for each in self.homes.get(home, ()))
        self.homes[thing] = (*homes, *further)

    def may_go(self, thing: Thing) -> bool:
        """Tell whether somebody has asked for this to go, or for something that it goes with."""
        return any(not self.facts[THERE, *each].is_surely(THERE) for each in (thing, *self.homes.get(thing, ())))
