"""Every reason that an instance or its server can give for not being as it was asked to be.

Each tells what is the matter, who can do something about it, and what. A test walks the controllers of compute and of
region's servers, and fails on a reason that is not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from remuda.compute.history.schema import Who
from remuda.compute.instances.making import NET_S
from remuda.reconcile.ports import DriverSettings

_CONTROL = DriverSettings()
_SOON_S = int(NET_S)
_NOW_AND_THEN_S = round(_CONTROL.blocked_within_s[1])
_BACKED_OFF_S = int(_CONTROL.backoff.longest_s)
_UNTOLD_S = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """What is behind a word."""

    says: str
    """What is the matter: a sentence without its end, since what else is known of it follows."""
    who: Who
    remedy: str
    retry_within_s: int = _NOW_AND_THEN_S
    """How long it is between two tries at most: what region does is looked at every few seconds, what waits for others
    about each minute, and what failed after a pause that grows to minutes. Nought, where nothing is tried, or nobody
    can say when."""


PATIENCE = "Wait."
"""What to do about what goes on by itself."""
_UNFORESEEN = Reason("Something has to be mended", "operator", "Tell whoever runs the platform.", _BACKED_OFF_S)

REASONS: Mapping[str, Reason] = {
    "Pending": Reason("It waits for its controller to look at it", "itself", PATIENCE, _UNTOLD_S),
    "Provisioning": Reason("Its server is being made", "itself", PATIENCE, _SOON_S),
    "Changed": Reason("Its server is becoming what it was last asked to be", "itself", PATIENCE, _SOON_S),
    "Deprovisioning": Reason("What it had is being removed", "itself", PATIENCE, _SOON_S),
    "Rebuilding": Reason("Its server is being made anew", "itself", PATIENCE, _SOON_S),
    "OperationOpen": Reason("An operation that makes or changes it is under way", "itself", PATIENCE),
    "DependencyNotReady": Reason(
        "It waits for what it needs to be made",
        "itself",
        "Wait; if that takes long, look at its network and its security groups.",
    ),
    "QuotaExceeded": Reason(
        "It waits for room in the quota of its project or organization",
        "user",
        "Delete something that is not needed, or have the quota raised: a project's by an administrator of its "
        "organization, and an organization's by whoever runs the platform.",
    ),
    "NoCapacity": Reason(
        "It waits for room in its region for its flavor",
        "user",
        "Wait for room, choose another flavor, or make the instance in another region.",
        _BACKED_OFF_S,
    ),
    "AddressesExhausted": Reason(
        "It waits for a free address on its network",
        "user",
        "Delete something on the network, or make the instance on another one.",
    ),
    "PublicAddressesExhausted": Reason(
        "It waits for a free public address",
        "operator",
        "Do without a public address, or ask whoever runs the platform for more of them.",
        _BACKED_OFF_S,
    ),
    "AddressTaken": Reason(
        "It waits for its address, which something else has at its provider",
        "operator",
        "Have whoever runs the platform remove what has the address there.",
        _BACKED_OFF_S,
    ),
    "ProviderRefused": Reason(
        "Its provider does not make its server any more",
        "user",
        "Choose a flavor and an image that are offered now.",
        _BACKED_OFF_S,
    ),
    "DependencyNotFound": Reason(
        "Something that it names is gone",
        "user",
        "Name one that is there, or delete the instance.",
    ),
    "Errored": Reason(
        "It has failed, and does not recover by itself",
        "user",
        "Change the instance, by another image for example, or delete it and make it again; if that does not help, "
        "tell whoever runs the platform.",
        _BACKED_OFF_S,
    ),
    "ServerFailed": Reason(
        "Its server broke at its provider after it had run, and is left as it is",
        "user",
        "Give it another image or flavor, which makes its server anew and loses its disk, or delete it and make it "
        "again; if its disk is needed, ask whoever runs the platform first.",
        _UNTOLD_S,
    ),
    "InUse": Reason("It waits for what uses it to let go of it", "user", "Delete what uses it, or end that use."),
    "HasChildren": Reason("It waits for what belongs to it to go", "itself", PATIENCE),
    "MassDestruction": Reason(
        "Too much would be removed at once that nobody asked to remove, so nothing more is",
        "operator",
        "Have whoever runs the platform look why that is, and release it.",
    ),
    "AmbiguousServer": Reason(
        "It is not clear which server is its own, so nothing is done to any",
        "operator",
        "Have whoever runs the platform delete the servers that are not its own.",
    ),
    "NetworkDeleting": Reason(
        "Its network is being deleted, and takes it along",
        "itself",
        "If it is still needed, make it on another network.",
    ),
    "NetworkGone": Reason(
        "Its network is gone",
        "user",
        "Delete the instance, and make it on another network.",
        _UNTOLD_S,
    ),
    "ServerVanished": Reason(
        "Its server is gone, and nobody here asked for that",
        "itself",
        "Wait: it is looked for once more and then made again, and what was on its disk is lost.",
        _UNTOLD_S,
    ),
    "ServerDeleting": Reason("It waits for a server to go, before another is made", "itself", PATIENCE, _SOON_S),
    "NameTaken": Reason(
        "A server that is not its own has its name on its network",
        "user",
        "Delete that server, or make the instance under another name.",
    ),
    "Paused": Reason(
        "It waits for somebody to take back the pause",
        "operator",
        "Have whoever runs the platform take back the pause: until then nothing is done to it, but deleting it.",
        _UNTOLD_S,
    ),
    "Stuck": Reason(
        "An operation that makes or changes it failed, and could not be taken back",
        "operator",
        "Have whoever runs the platform look at the operation, and mend what keeps it from being undone.",
        _BACKED_OFF_S,
    ),
    "RegionUnreachable": Reason(
        "Region does not answer, so nobody can say how its server is",
        "operator",
        "Wait; if it lasts, tell whoever runs the platform.",
        _UNTOLD_S,
    ),
}
"""All of them, by their words."""


def reason_of(word: str) -> Reason:
    """Return what is behind a word; of one that nobody thought of, that somebody has to look."""
    return REASONS.get(word, _UNFORESEEN)
