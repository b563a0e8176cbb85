"""Fixtures of identity: the whole service, and parts of it."""

from tests.kit.environment import provided_by
from tests.kit.identity.authenticator import at_the_door
from tests.kit.identity.external_issuer import in_the_lobby
from tests.kit.identity.launch import in_a_house
from tests.kit.identity.login import at_home
from tests.kit.identity.oauth import at_a_desk
from tests.kit.identity.permissions import on_ground
from tests.kit.identity.quotas import in_quotas
from tests.kit.identity.tenancy import in_tenancy
from tests.kit.identity.users import in_the_house

identity = provided_by(in_a_house)
authentication = provided_by(at_the_door)
external_issuer = provided_by(in_the_lobby)
logins = provided_by(at_home)
oauth = provided_by(at_a_desk)
people = provided_by(in_the_house)
quotas = provided_by(in_quotas)
rights = provided_by(on_ground)
tenancy = provided_by(in_tenancy)
