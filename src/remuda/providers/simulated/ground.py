"""What all rooms of the cloud stand on."""

from dataclasses import dataclass

from remuda.kernel.randomness import Randomness
from remuda.providers.simulated.catalogue import Catalogue
from remuda.providers.simulated.database import Storage
from remuda.providers.simulated.gateway import Desk
from remuda.providers.simulated.timers import Clockwork


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Passed to every room."""

    catalogue: Catalogue
    storage: Storage
    clockwork: Clockwork
    desk: Desk
    randomness: Randomness
