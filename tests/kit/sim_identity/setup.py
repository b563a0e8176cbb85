"""What identity has to begin with in a simulation: its settings, who uses it, and what must be there for them."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from remuda.identity.kinds.oauth import OAuth2Client, OAuth2ClientSpec, Password
from remuda.identity.kinds.users import User, UserSpec, user_id
from remuda.identity.login.passwords import Passwords
from remuda.identity.settings import IdentitySettings, RoleBinding
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.errors import AlreadyExists
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.kit.identity.login import CONSOLE, CONSOLE_HOME, CONSOLE_SECRET, CONSOLE_URI, ISSUER
from tests.kit.sim_identity.guarded import CAREFUL, PERSONS
from tests.kit.sim_identity.guests import GUESTS, Guests
from tests.kit.sim_identity.members import Members
from tests.kit.sim_identity.persons import Persons
from tests.kit.sim_identity.readers import Readers
from tests.kit.sim_identity.spenders import Spenders
from tests.kit.sim_identity.tenants import Tenants

ROOT = "root@remuda.test"
FIRST_PASSWORD = "correct horse battery staple"
SETTINGS = IdentitySettings(
    issuer=ISSUER,
    platform_administrators=(ROOT,),
    signing_key_lifetime=timedelta(days=2),
    service_account_token_lifetime=timedelta(days=5),
    refresh_token_lifetime=timedelta(days=10),
    intent_lifetime=timedelta(minutes=1),
    logins_per_minute=100_000,
    login_failures_before_delay=100_000,
    role_bindings=(RoleBinding(subject=CAREFUL, roles=("platform-reader",)),),
    platform_second_factor="password",
)
Crowd = Mapping[type[Tenants | Members | Spenders | Guests | Readers | Persons], int]
CROWD: Crowd = {
    Tenants: 5,
    Members: 7,
    Spenders: 6,
    Guests: 6,
    Readers: 6,
    Persons: 7,
}
"""Who is about, and how much of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast everything goes: a simulation has all the time in the world."""

    pause_s: float = 3.0
    """Between two acts of a customer, at most."""
    look_every_s: float = 5.0
    rest_s: float = 8 * 3600.0
    """By then everything has come to rest when nothing goes wrong any more, even if the clock was put back before."""


async def set_up(store: Store, passwords: Passwords) -> None:
    """Make what customers need to begin with, where it is missing."""
    client = OAuth2ClientSpec(
        redirect_uri=CONSOLE_URI,
        home_uri=CONSOLE_HOME,
        secret_hash=token_hash(CONSOLE_SECRET),
        is_challenge_optional=True,
    )
    with suppress(AlreadyExists):
        metadata = Metadata(name=CONSOLE, labels={NAME: "console"})
        await store.create(OAuth2Client(metadata=metadata, spec=client))
    for subject in (ROOT, *GUESTS, *PERSONS):
        with suppress(AlreadyExists):
            await store.create(User(metadata=Metadata(name=user_id(subject)), spec=UserSpec(subject=subject)))
    chosen = {each.name for each in (await store.list(Password)).items}
    for name in map(user_id, (*GUESTS, *PERSONS)):
        if name not in chosen:
            await passwords.set_password(name, Secret(FIRST_PASSWORD))
