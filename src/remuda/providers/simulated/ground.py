"""What all rooms of the cloud stand on."""

from dataclasses import dataclass

from remuda.kernel.randomness import Randomness
from remuda.providers.simulated.catalogue import Catalogue
from remuda.providers.simulated.clockwork import Clockwork
from remuda.providers.simulated.desk import Desk
from remuda.providers.simulated.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Passed to every room."""

    catalogue: Catalogue
    storage: Storage
    clockwork: Clockwork
    desk: Desk
    randomness: Randomness
