"""User data in what an operation remembers: sealed, because a record holds no secret.

A seal is always the same for the same instance and user data, so the same request sent again is seen to be the same.
"""

from typing import TypeVar

import msgspec

from remuda.compute.instances.wire import InstanceCreate, InstanceUpdate
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret

__all__ = ["opened", "sealed"]

WantedT = TypeVar("WantedT", InstanceCreate, InstanceUpdate)

replace = msgspec.structs.replace


def sealed(wanted: WantedT, instance: str, sealer: Sealer) -> WantedT:
    """Return what is wanted of an instance with its user data sealed."""
    text = wanted.spec.user_data
    return _saying(wanted, sealer.seal(Secret(text), context=_context(instance))) if text else wanted


def opened(wanted: WantedT, instance: str, sealer: Sealer) -> WantedT:
    """Return it as it was."""
    text = wanted.spec.user_data
    return _saying(wanted, sealer.open(text, context=_context(instance)).reveal()) if text else wanted


def _saying(wanted: WantedT, user_data: str) -> WantedT:
    return replace(wanted, spec=replace(wanted.spec, user_data=user_data))


def _context(instance: str) -> str:
    return f"user data of the instance {instance}"
