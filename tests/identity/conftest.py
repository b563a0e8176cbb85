"""Fixtures of identity: the whole service, and parts of it."""

from tests.kit.environment import provided_by
from tests.kit.identity.authenticator import run_authenticator
from tests.kit.identity.external_issuer import run_external_issuer
from tests.kit.identity.launch import run_identity
from tests.kit.identity.login import run_login
from tests.kit.identity.oauth import run_oauth
from tests.kit.identity.permissions import run_permissions
from tests.kit.identity.quotas import run_quotas
from tests.kit.identity.tenancy import run_tenancy
from tests.kit.identity.users import run_users

identity = provided_by(run_identity)
authentication = provided_by(run_authenticator)
external_issuer = provided_by(run_external_issuer)
logins = provided_by(run_login)
oauth = provided_by(run_oauth)
users_api = provided_by(run_users)
quotas = provided_by(run_quotas)
permissions = provided_by(run_permissions)
tenancy = provided_by(run_tenancy)
