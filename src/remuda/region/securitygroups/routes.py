"""Routes of security groups."""

from functools import partial

from remuda.http.crud import crud
from remuda.region.names import permission
from remuda.region.securitygroups import rules, schema
from remuda.region.securitygroups.service import SecurityGroups
from remuda.resources.query import NetworkedQuery

SECURITY_GROUPS = "/api/v2/securitygroups"

ROUTES = crud(
    SecurityGroups,
    path=SECURITY_GROUPS,
    item=schema.SecurityGroupPath,
    name="security_group",
    noun="a security group",
    permission=partial(permission, "securitygroups:v2"),
    view=rules.GROUP_VIEW,
    query=NetworkedQuery,
    create=schema.SecurityGroupCreate,
    update=schema.SecurityGroupUpdate,
    read=schema.SecurityGroupRead,
    descriptions={
        "create": "The network cannot be changed later. Traffic that no rule allows is dropped.",
        "delete": "A group that a server uses cannot be deleted.",
    },
)
