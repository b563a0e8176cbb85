"""When snapshots of file storage are taken, and how many are kept."""

from typing import Literal

from remuda.store.objects import StoredStruct

Interval = Literal["hourly", "daily", "weekly", "monthly"]
"""How often."""

DayOfWeek = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
"""When in a week."""


class Schedule(StoredStruct, frozen=True):
    """When a snapshot is taken. Only what the interval leaves open is said."""

    interval: Interval
    time_of_day: str = ""
    """UTC, such as `04:00Z`."""
    day_of_week: DayOfWeek | None = None
    day_of_month: int | None = None


class Retention(StoredStruct, frozen=True):
    """How many snapshots are kept."""

    keep: int


class SnapshotPolicy(StoredStruct, frozen=True):
    """A schedule with a name."""

    name: str
    schedule: Schedule
    retention: Retention
