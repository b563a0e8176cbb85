"""Routes of load balancers."""

from functools import partial

from remuda.http.crud import crud
from remuda.region.loadbalancers import rules, schema
from remuda.region.loadbalancers.service import LoadBalancers
from remuda.region.names import permission
from remuda.resources.query import NetworkedQuery

LOAD_BALANCERS = "/api/v2/loadbalancers"

ROUTES = crud(
    LoadBalancers,
    path=LOAD_BALANCERS,
    item=schema.BalancerPath,
    name="load_balancer",
    noun="a load balancer",
    permission=partial(permission, "loadbalancers:v2"),
    view=rules.BALANCER_VIEW,
    query=NetworkedQuery,
    create=schema.BalancerCreate,
    update=schema.BalancerUpdate,
    read=schema.BalancerRead,
)
