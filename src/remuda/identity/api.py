"""Identity's route table: the routes of all its rooms."""

from remuda.http.mounting import within
from remuda.http.routes import Table
from remuda.identity.auditing import api as auditing
from remuda.identity.login import api as login
from remuda.identity.oauth import routes as oauth
from remuda.identity.operator import api as operator
from remuda.identity.quotas import routes as quotas
from remuda.identity.rbac import routes as rights
from remuda.identity.tenancy import routes as tenancy
from remuda.identity.users import routes as people

TABLE = Table(
    "identity",
    title="Identity",
    description="Who there is, what they may do, and how much of everything they may use.",
    routes=[
        *within(lambda identity: identity.tenancy, tenancy.routes()),
        *within(lambda identity: identity.people, people.routes()),
        *within(lambda identity: identity.rights, rights.routes()),
        *within(lambda identity: identity.oauth, oauth.routes()),
        *within(lambda identity: identity.browser, login.routes()),
        *within(lambda identity: identity.quotas, quotas.routes()),
        *within(lambda identity: identity.auditing, auditing.routes()),
        *within(lambda identity: identity.operators, operator.routes()),
    ],
)
"""The whole API, which `assembly` mounts with an `Identity`."""
