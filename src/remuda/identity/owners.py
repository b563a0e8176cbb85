"""Owners: the organizations of identity's objects, for the audit of requests that name them."""

from collections.abc import Mapping

from remuda.http.audit import FindOwner
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.quotas import Allocation
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount
from remuda.resources.crud import exists
from remuda.resources.owners import no_owner, owner_by_label
from remuda.store.contract import Store
from remuda.store.objects import Resource

_KINDS: Mapping[str, type[Resource]] = {
    "allocationID": Allocation,
    "groupid": Group,
    "projectID": Project,
    "providerID": OAuth2Provider,
    "serviceAccountID": ServiceAccount,
    "userID": OrganizationUser,
}
"""Kinds of the objects that path parameters name."""


def owners_in_identity(store: Store) -> Mapping[str, FindOwner]:
    """Return a function for each path parameter of identity that names an object. Clients and suspensions have none."""

    async def existing(named: Mapping[str, str]) -> str | None:
        organization = named["organizationID"]
        return organization if await exists(store, Organization, organization) else None

    return {
        **{name: owner_by_label(store, kind, name) for name, kind in _KINDS.items()},
        "clientID": no_owner,
        "suspensionID": no_owner,
        "organizationID": existing,
    }
