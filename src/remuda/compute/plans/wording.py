"""Plans in words: one short sentence for each step, loss and survivor, so that nobody has to guess."""

from collections.abc import Mapping

from remuda.compute.plans.deciding import StepKind
from remuda.compute.plans.wire import DowntimeRead, Extent, Thing

__all__ = ["STEPS", "downtime_of", "lost_sentence", "summary", "survives_sentence"]

STEPS: Mapping[StepKind, str] = {
    "in-place": "This is changed while the instance runs.",
    "deferred": "This is stored, and takes effect when the instance is next rebuilt or replaced.",
    "reboot": "The instance is rebooted.",
    "rebuild": "The server is written anew from its image and starts for the first time again, with the user data that "
    "the instance has by then; if it is stopped, it does so when it is next started. It stays the same server, behind "
    "the same port.",
    "replace": "A new server, with the user data that the instance has by then, takes the place of the old one behind "
    "the same port, and starts, also if the old one is stopped. The old one is removed before that.",
}
"""What is done in a step of each kind."""

_LOST: Mapping[Thing, str] = {
    "privateIP": "The private address is given up: this region cannot keep it for another server.",
    "macAddress": "The MAC address is given up: this region cannot keep it for another server.",
    "rootDisk": "Everything on the root disk is lost.",
    "sshHostKeys": "The SSH host keys are lost: it gets new ones, and clients that know the old ones will warn.",
    "memory": "Everything that runs on it ends, with what it has in memory.",
}
_SURVIVES: Mapping[Thing, str] = {
    "id": "The instance keeps its id.",
    "name": "The instance keeps its name.",
    "privateIP": "The private address stays.",
    "macAddress": "The MAC address stays.",
    "publicIP": "The public address stays.",
    "rootDisk": "The root disk is not touched.",
    "sshHostKeys": "The SSH host keys stay.",
    "memory": "What runs on it goes on.",
}
_DOWNTIMES: Mapping[Extent, str] = {
    "none": "It is not down.",
    "seconds": "It is down while a server starts: seconds, or a few minutes where the image is large.",
    "unknown": "It is down while a machine is prepared, and how long that takes nobody can say beforehand.",
}
_SUMMARIES: Mapping[StepKind, str] = {
    "in-place": "It is changed in place",
    "deferred": "Its new user data is stored for later",
    "reboot": "It is rebooted",
    "rebuild": "It is rebuilt in place",
    "replace": "Its server is replaced",
}
_WORDS: Mapping[Thing, str] = {
    "privateIP": "its private address",
    "macAddress": "its MAC address",
    "publicIP": "its public address",
    "rootDisk": "its root disk",
    "sshHostKeys": "its SSH host keys",
    "memory": "what runs on it",
}


def downtime_of(extent: Extent) -> DowntimeRead:
    """Return how long it is down, in words too."""
    return DowntimeRead(extent=extent, sentence=_DOWNTIMES[extent])


def lost_sentence(thing: Thing, *, is_given_up: bool) -> str:
    """Return what it means that something is lost; a public address may be one that nobody wants any more."""
    if thing == "publicIP" and is_given_up:
        return "The public address is given back, and somebody else may get it: asking again brings another one."
    if thing == "publicIP":
        return "The public address is given up: this region cannot keep it for another server."
    return _LOST[thing]


def survives_sentence(thing: Thing) -> str:
    """Return what it means that something stays."""
    return _SURVIVES[thing]


def summary(kinds: tuple[StepKind, ...], lost: tuple[Thing, ...]) -> str:
    """Return a plan in one sentence or two."""
    if not kinds:
        return "Nothing changes."
    done = " ".join(f"{_SUMMARIES[kind]}." for kind in kinds)
    return f"{done} It loses {_enumerated([_WORDS[thing] for thing in lost])}." if lost else f"{done} Nothing is lost."


def _enumerated(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
