"""Every reason that an instance or its server can give for not being as it was asked to be.

Each tells what it waits for, who can do something about it, and what. A test walks the controllers of compute and of
region's servers, and fails on a reason that is not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from remuda.compute.history.wire import Who

__all__ = ["REASONS", "Reason", "reason_of"]

_SOON_S, _NOW_AND_THEN_S, _BACKED_OFF_S = 5, 60, 300


@dataclass(frozen=True, slots=True)
class Reason:
    """What is behind a word."""

    waits_for: str
    """Goes on after "It waits for"."""
    who: Who
    remedy: str
    retry_within_s: int = _NOW_AND_THEN_S
    """How long it is between two tries at most: what waits for others is looked at each minute, what failed is tried
    again after a pause that grows to five."""


_PATIENCE = "Nothing has to be done: wait."
_UNFORESEEN = Reason("something to be mended", "operator", "Tell whoever runs the platform.", _BACKED_OFF_S)

REASONS: Mapping[str, Reason] = {
    "Pending": Reason("its controller to look at it", "itself", _PATIENCE, _SOON_S),
    "Provisioning": Reason("its server to be made as it was asked for", "itself", _PATIENCE, _SOON_S),
    "Changed": Reason("its server to become what it was last asked to be", "itself", _PATIENCE, _SOON_S),
    "Deprovisioning": Reason("what it had to be removed", "itself", _PATIENCE, _SOON_S),
    "Rebuilding": Reason("its server to be rebuilt", "itself", _PATIENCE, _SOON_S),
    "OperationOpen": Reason("the operation that makes or changes it to end", "itself", _PATIENCE, _SOON_S),
    "DependencyNotReady": Reason(
        "what it needs to be made",
        "itself",
        "Wait; if that takes long, look at its network and its security groups.",
    ),
    "QuotaExceeded": Reason(
        "room in the quota of its project or organization",
        "administrator",
        "Delete something that is not needed, or have an administrator of the organization raise the quota.",
    ),
    "NoCapacity": Reason(
        "room in its region for its flavor",
        "user",
        "Wait for room, choose another flavor, or make the instance in another region.",
        _BACKED_OFF_S,
    ),
    "AddressesExhausted": Reason(
        "a free address on its network",
        "user",
        "Delete something on the network, or make the instance on another one.",
    ),
    "PublicAddressesExhausted": Reason(
        "a public address",
        "operator",
        "Do without a public address, or ask whoever runs the platform for more of them.",
        _BACKED_OFF_S,
    ),
    "AddressTaken": Reason(
        "its address, which the provider has given to something that is not ours",
        "operator",
        "Have whoever runs the platform remove what has the address at the provider.",
        _BACKED_OFF_S,
    ),
    "ProviderRefused": Reason(
        "its provider to take its flavor, image or host again",
        "user",
        "Choose a flavor and an image that are offered now.",
        _BACKED_OFF_S,
    ),
    "DependencyNotFound": Reason(
        "something that it names and that is gone",
        "user",
        "Name one that is there, or delete the instance.",
    ),
    "Errored": Reason(
        "a failure to be mended",
        "user",
        "Change the instance, by another image for example, or delete it and make it again; if that does not help, "
        "tell whoever runs the platform.",
        _BACKED_OFF_S,
    ),
    "InUse": Reason("those that use it to let go of it", "user", "Delete what uses it, or take it out of their use."),
    "HasChildren": Reason("what belongs to it to go", "itself", _PATIENCE),
    "MassDestruction": Reason(
        "an operator's word, since too much would be removed at once that nobody asked to remove",
        "operator",
        "Have whoever runs the platform look why that is, and release it.",
    ),
    "AmbiguousServer": Reason(
        "its server to be the only one that says it is its own",
        "operator",
        "Have whoever runs the platform delete the servers that are too many; until then nothing is done to any.",
    ),
    "NetworkDeleting": Reason(
        "nothing more: its network is being deleted, and takes it along",
        "itself",
        "Make the instance on another network.",
    ),
    "NetworkGone": Reason(
        "its network, which is gone",
        "user",
        "Delete the instance, and make it on another network.",
    ),
    "ServerVanished": Reason(
        "its server to be looked for once more, before it is made again", "itself", _PATIENCE, _SOON_S
    ),
    "ServerDeleting": Reason("its server to go, before another is made", "itself", _PATIENCE, _SOON_S),
    "NameTaken": Reason(
        "its name on its network, which a server has that is not its own",
        "user",
        "Delete that server, or make the instance under another name.",
    ),
    "Paused": Reason(
        "somebody to take back the pause",
        "operator",
        "Have whoever runs the platform take back the pause: until then nothing is done to it, but deleting it.",
    ),
    "Stuck": Reason(
        "an operation that could not be taken back",
        "operator",
        "Have whoever runs the platform look at the operation, and mend what keeps it from being undone.",
        _BACKED_OFF_S,
    ),
    "RegionUnreachable": Reason(
        "region to answer",
        "operator",
        "Wait; if it lasts, tell whoever runs the platform.",
        _BACKED_OFF_S,
    ),
}
"""All of them, by their words."""


def reason_of(word: str) -> Reason:
    """Return what is behind a word; of one that nobody thought of, that somebody has to look."""
    return REASONS.get(word, _UNFORESEEN)
