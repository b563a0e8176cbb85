"""What is kept of an instance that goes, where nothing else is: whose it was is found, however much is told later.

Who asks for its name once more and is refused leaves entries under the id of an instance that is gone, and there is no
end to those.
"""

import msgspec

from remuda.compute.kinds.instances import ComputeInstance
from remuda.reconcile.lifecycle import LET_GO
from remuda.reconcile.results import Run
from remuda.store.logs import Record


def departure(instance: ComputeInstance, run: Run) -> Record:
    """Return what to keep of an instance in the commit by which it goes."""
    entry = run.entry(instance, LET_GO, labels=instance.metadata.labels)
    return msgspec.structs.replace(entry, subject=departures_under(entry.subject))


def departures_under(subject: str) -> str:
    """Return under which subject the instances are kept that went, by that of what happened to them."""
    return f"{subject}/gone"
