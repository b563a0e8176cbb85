"""What compute stores. `KINDS` is all of it.

Instances have the fields that existing clusters know, and some of our own beside them. Kinds of the group
`compute.remuda` are ours alone.
"""

from typing import Any

from remuda.compute.kinds.instances import INSTANCE
from remuda.compute.kinds.policies import POLICY
from remuda.store.kinds import Kind

__all__ = ["KINDS"]

KINDS: tuple[Kind[Any], ...] = (INSTANCE, POLICY)
"""Every kind of the compute service."""
