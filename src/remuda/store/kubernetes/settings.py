"""What surrounds a Kubernetes store, and what an operator may set about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.store.kubernetes.journal import Sink
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.upkeep import UpkeepSettings


@dataclass(frozen=True, kw_only=True)
class KubernetesPorts:
    """Everything outside the store that it touches, the network excepted."""

    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    """Where the log streams go that are not kept in journals."""


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """What an operator may set."""

    namespace: str = "remuda"
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    upkeep: UpkeepSettings = field(default_factory=UpkeepSettings)
    delivery_patience_s: float = 30.0
    """How long a write waits to be seen by its own informer."""
    opening_patience_s: float = 60.0
    """How long opening waits for a server that does not answer."""
    watch_silence_s: float = 90.0
    """How long a watch may be silent before it is taken for dead. A server says something about once a minute."""
    collects: bool = True
    """Whether this process lets marked objects go that nobody refers to. One is enough; more do no harm."""
