"""What file storage cannot be."""

from collections.abc import Sequence

from remuda.kernel.errors import Invalid
from remuda.region.filestorage.schema import PolicyWire, ScheduleWire
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.quantities import GIB

SYSTEM_DEFAULT = "system-default"
"""The name of the policy that the default protection is stored as; nobody else may use it."""

_MOST_GIB = (1 << 63) // GIB - 1

_SCHEDULES = {
    "hourly": (set(), "hourly snapshot policies must not define timeOfDay, dayOfWeek, or dayOfMonth"),
    "daily": (
        {"time_of_day"},
        "daily snapshot policies require timeOfDay and must not define dayOfWeek or dayOfMonth",
    ),
    "weekly": (
        {"time_of_day", "day_of_week"},
        "weekly snapshot policies require timeOfDay and dayOfWeek and must not define dayOfMonth",
    ),
    "monthly": (
        {"time_of_day", "day_of_month"},
        "monthly snapshot policies require timeOfDay and dayOfMonth and must not define dayOfWeek",
    ),
}
"""What each interval asks for, and how it is told that something is missing or too much."""


def check_size(size_gib: int) -> None:
    """Refuse a size that no storage has."""
    if size_gib < 1:
        raise Invalid("spec.sizeGiB", "size must be greater or equal to 1GiB")
    if size_gib > _MOST_GIB:
        raise Invalid("spec.sizeGiB", "is larger than any storage", remedy=f"ask for {_MOST_GIB} at most")


def check_room(storage: FileStorage, size_gib: int) -> None:
    """Refuse to make storage smaller than what is known to be on it."""
    used = storage.status.usage
    if used is not None and size_gib * GIB < min(used, storage.spec.size):
        least = -(-used // GIB)
        raise Invalid("spec.sizeGiB", "is less than what is on the storage", remedy=f"ask for {least} at least")


def check_policies(policies: Sequence[PolicyWire]) -> None:
    """Refuse policies that are not possible, or that cannot be told apart."""
    seen = set()
    for policy in policies:
        _check_schedule(policy.schedule)
        if policy.name == SYSTEM_DEFAULT:
            raise Invalid("spec.snapshotPolicies", f'"{SYSTEM_DEFAULT}" is a reserved snapshot policy name')
        if policy.name in seen:
            raise Invalid("spec.snapshotPolicies", "snapshot policy names must be unique")
        seen.add(policy.name)


def _check_schedule(schedule: ScheduleWire) -> None:
    wanted, otherwise = _SCHEDULES[schedule.interval]
    given = {name for name in ("time_of_day", "day_of_week", "day_of_month") if getattr(schedule, name) is not None}
    if given != wanted:
        raise Invalid("spec.snapshotPolicies", otherwise)
