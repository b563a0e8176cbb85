"""Plans in words: one short sentence for each step, loss and survivor, so that nobody has to guess."""

from collections.abc import Mapping

from remuda.compute.plans.diff import StepKind
from remuda.compute.plans.schema import DowntimeRead, Extent, Thing
from remuda.compute.plans.sides import Subject

_STEPS: Mapping[StepKind, str] = {
    "in-place": "This is changed while the instance runs.",
    "deferred": "This is stored, and takes effect when the instance is next rebuilt or replaced.",
    "reboot": "The instance is rebooted.",
    "rebuild": "The server is written anew from its image and starts for the first time again, with the user data that "
    "the instance has by then; if it is stopped, it does so when it is next started. It stays the same server, behind "
    "the same port.",
    "replace": "A new server, with the user data that the instance has by then, takes the place of the old one behind "
    "the same port, and starts, also if the old one is stopped. The old one is removed before that.",
}
_AS_IT_STANDS = "This is changed in place: nothing is started or stopped for it."
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
_NO_FURTHER = "It does not run now: there is no further downtime."
_ANEW = (
    "Its server is being made anew already, with a new root disk and new SSH host keys. It is down until that is done"
)
_AFTER_THAT: Mapping[Extent, str] = {
    "none": "not for longer because of this.",
    "seconds": "once more while a server starts: seconds, or a few minutes where the image is large.",
    "unknown": "once more while a machine is prepared, and how long that takes nobody can say beforehand.",
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


def step_sentence(kind: StepKind, subject: Subject) -> str:
    """Return what is done in a step."""
    is_running = subject.runs and not subject.is_made_anew
    return _STEPS[kind] if is_running or kind != "in-place" else _AS_IT_STANDS


def downtime_of(extent: Extent, subject: Subject) -> DowntimeRead:
    """Return how long it is down because of a change, in words too."""
    if subject.is_made_anew:
        return DowntimeRead(extent=extent, sentence=f"{_ANEW}, and {_AFTER_THAT[extent]}")
    if not subject.runs:
        return DowntimeRead(extent="none", sentence=_NO_FURTHER)
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


def summary(kinds: tuple[StepKind, ...], lost: tuple[Thing, ...], *, is_made_anew: bool) -> str:
    """Return a plan in one sentence or two."""
    if not kinds:
        return "Nothing changes."
    done = " ".join(f"{_SUMMARIES[kind]}." for kind in kinds)
    if lost:
        return f"{done} It loses {_enumerated([_WORDS[thing] for thing in lost])}."
    return f"{done} Nothing {'more is lost: its server is being made anew already' if is_made_anew else 'is lost'}."


def _enumerated(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
