"""What an operator has said about an object that its controller cannot bring on by itself.

It is said in annotations, so that it reaches the controller as an event, in whichever process that is, and stays.
"""

from remuda.store.objects import Resource

RETRIED = "remuda/retried"
"""The annotation whose every change has a controller look at once; its value is the operation that asked for it."""
ABANDONED = "remuda/abandoned"
"""The annotation by which an object goes without what it has at its provider; its value is why."""
ABANDONMENT = "Abandoned"
"""What the timeline of such an object calls it."""


def is_abandoned(resource: Resource) -> bool:
    """Tell whether what an object has at its provider is left there when the object goes."""
    return ABANDONED in resource.metadata.annotations
