"""What can be set about compute, with its type, its default and what it means."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from remuda.compute.settings import ComputeSettings
from remuda.config.about import About, Section
from remuda.config.fields import is_some

_DEFAULT = ComputeSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(Section):
    """How closely instances are looked after."""

    look_again: Annotated[
        timedelta,
        About("How far two looks are apart, at least, that find a server gone which was there before.", is_some),
    ] = _DEFAULT.look_again
    check_every: Annotated[
        timedelta,
        About("How often the monitor looks whether instances, servers and what is held for them agree.", is_some),
    ] = _DEFAULT.check_every
    stuck_after: Annotated[
        timedelta, About("For how long an instance may not move before the monitor says so.", is_some)
    ] = _DEFAULT.stuck_after
