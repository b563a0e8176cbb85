"""Who pays for what is made.

That is whom the caller's credentials name, if they name all of it: an organization, and a project of it. Otherwise it
is whoever it is made for. What is charged is read from an object's labels later on, so what no label can hold names
nobody.
"""

from remuda.access.principal import Principal
from remuda.kernel.ids import is_id
from remuda.quota.ports import Place


def paying_for(principal: Principal, place: Place) -> Principal:
    """Return the caller as the one who pays for something new at a place."""
    if is_id(principal.organization or "") and is_id(principal.project or ""):
        return principal
    return principal.paying(place.organization, place.project)
