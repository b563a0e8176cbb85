"""References that come over the API: what of another service keeps an object of ours, written as a finalizer."""

from remuda.kernel.errors import Invalid
from remuda.store.checks import check_qualified
from remuda.store.objects import OURS

__all__ = ["check_reference"]


def check_reference(reference: str, *, own: str) -> None:
    """Refuse what is no reference of another service's, on its way in and on its way out alike.

    Such are the finalizers by which we keep things ourselves (what begins as `own`, and the store's), and what no
    backend could keep.
    """
    owner, _, name = reference.partition("/")
    if "." not in owner or not name or owner == own.partition("/")[0] or reference in OURS:
        raise Invalid("reference", "is not a resource's", remedy="write it as plural.group/id")
    check_qualified("reference", reference)
