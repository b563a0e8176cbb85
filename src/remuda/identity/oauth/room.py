"""The room for programs, put together."""

from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.identity.oauth.assertion import Assertions
from remuda.identity.oauth.clients import Clients
from remuda.identity.oauth.codes import Codes
from remuda.identity.oauth.devices import Devices
from remuda.identity.oauth.exchange import Exchange
from remuda.identity.oauth.grants import Grants
from remuda.identity.oauth.registration import Registration
from remuda.identity.oauth.service import OAuth
from remuda.identity.rbac.service import Rights
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.room import TokenRoom
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.store.contract import Store

_DEVICES_PER_LOGIN = 3
"""A device may be begun more often than a password be tried: a program that waits begins again."""


def oauth_room(
    *,
    store: Store,
    clock: Clock,
    randomness: Randomness,
    settings: IdentitySettings,
    room: TokenRoom,
    rights: Rights,
) -> OAuth:
    """Return the room, over that of the tokens. Codes, devices and clients are those that logins must share."""
    tokens, sessions, bearers = room.tokens, room.sessions, room.bearers
    assertions = Assertions(store=store, clock=clock, settings=settings)
    clients = Clients(store=store, assertions=assertions)
    codes = Codes(store=store, clock=clock, randomness=randomness, settings=settings, sessions=sessions)
    devices = Devices(store=store, clock=clock, randomness=randomness, settings=settings)
    return OAuth(
        settings=settings,
        tokens=tokens,
        sessions=sessions,
        bearers=bearers,
        rights=rights,
        clients=clients,
        devices=devices,
        beginnings=RateLimiter(
            RateLimit(quota=_DEVICES_PER_LOGIN * settings.logins_per_minute, window_s=60, name="devices"), clock
        ),
        grants=Grants(
            store=store,
            clock=clock,
            settings=settings,
            tokens=tokens,
            sessions=sessions,
            clients=clients,
            codes=codes,
            devices=devices,
        ),
        exchange=Exchange(
            store=store,
            clock=clock,
            randomness=randomness,
            settings=settings,
            tokens=tokens,
            bearers=bearers,
            rights=rights,
        ),
        registration=Registration(store=store, clock=clock, randomness=randomness),
    )
