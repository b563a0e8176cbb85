"""Everybody who could call compute, with the permissions that hold in the end.

They are the callers of region's matrix, each with what its role allows besides. A service that acts as somebody has
nothing more: its own role allows nothing in compute.
"""

from dataclasses import replace

from tests.kit.proofs.authorization import region_callers
from tests.kit.proofs.authorization.compute_roles import whole
from tests.kit.proofs.authorization.matrix import Caller


def _with_all(caller: Caller) -> Caller:
    if caller.sort == "system":
        return caller
    return replace(
        caller,
        everywhere=whole(caller.everywhere),
        organizations={name: whole(held) for name, held in caller.organizations.items()},
        projects={place: whole(held) for place, held in caller.projects.items()},
    )


CALLERS = tuple(map(_with_all, region_callers.CALLERS))
KNOWN = [caller for caller in CALLERS if caller.is_known]
