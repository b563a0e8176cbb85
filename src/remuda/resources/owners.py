"""Owners: the organizations of stored objects, for the audit of requests that name them in their path or body."""

from collections.abc import Mapping

from remuda.http.audit import FindOwner
from remuda.resources.conventions import ORGANIZATION
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Resource


def owner_by_label(store: Store, kind: type[Resource], parameter: str) -> FindOwner:
    """Return a function that finds the organization of the object of this kind that a parameter names."""

    async def find_owner(named: Mapping[str, str]) -> str | None:
        return await organization_label(store, kind, named[parameter])

    return find_owner


async def organization_label(store: Store, kind: type[Resource], name: str) -> str | None:
    """Return the organization of an object, or None if it does not exist or belongs to none."""
    found = await find(store, kind, name)
    return None if found is None else found.metadata.labels.get(ORGANIZATION)


async def no_owner(_named: Mapping[str, str]) -> str | None:
    """Return None: what the parameter names belongs to no organization, such as a region."""
    return None
