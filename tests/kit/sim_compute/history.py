"""What customers asked of compute and what they were told, and what was done to instances behind its back."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tests.kit.sim_identity.facts import UNKNOWN
from tests.kit.sim_identity.history import Asked, Key, Requests
from tests.kit.sim_region.history import RegionHistory

Made = tuple[str, str, str]
"""What a server is made of: flavor, image and authority. Another of these destroys what was there."""

RECREATED = {"instance flavor", "instance image", "instance authority"}
"""What is said of an instance that makes its server again if it becomes another."""


class ComputeHistory(RegionHistory):
    """All of it. An instance goes with its network, and that with its project."""

    def __init__(self) -> None:
        super().__init__()
        self.undercut: set[str] = set()
        """Instances whose server somebody removed at region, by id: the next one has another port."""
        self.agreed: defaultdict[str, set[Made]] = defaultdict(set)
        """What somebody wanted an instance to be made of with a plan's hash, by the instance's id."""


class Firm:
    """What is surely the case from now on, for as long as nobody asks for anything else."""

    def __init__(self, history: ComputeHistory, key: Key) -> None:
        self._fact, self._key = history.facts[key], key
        self._requests = set(self._fact._requests)
        possible = self._fact.possible
        self.value = next(iter(possible)) if len(possible) == 1 else UNKNOWN
        """UNKNOWN if it is not sure."""

    def is_still(self, value: object, asked: Asked | None = None) -> bool:
        """Tell whether it was this all the time, whatever was `asked` by whoever wants to know."""
        own: Mapping[Key, int] = {} if asked is None else asked.requests
        return self.value == value and set(self._fact._requests) - {own.get(self._key)} <= self._requests


def made_of(spec: Mapping[str, Any]) -> Made:
    """Return what somebody wants a server to be made of."""
    return spec["flavorId"], spec["imageId"], spec.get("sshCertificateAuthorityId", "")


def requests_of(id_: str, spec: Mapping[str, Any]) -> Requests:
    """Return what is said of an instance by one who wants it so. Of protection nothing need be said."""
    networking, protection = spec.get("networking") or {}, spec.get("protection") or {}
    names = {"deletion": "instance kept", "plan": "instance planned"}
    return {
        **{(names[what], "instance", id_): value for what, value in protection.items()},
        ("instance flavor", "instance", id_): spec["flavorId"],
        ("instance image", "instance", id_): spec["imageId"],
        ("instance authority", "instance", id_): spec.get("sshCertificateAuthorityId", ""),
        ("instance public", "instance", id_): bool(networking.get("publicIP")),
        ("instance groups", "instance", id_): tuple(networking.get("securityGroups", ())),
        ("instance data", "instance", id_): spec.get("userData", ""),
    }
