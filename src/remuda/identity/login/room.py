"""The room for browsers, put together."""

from remuda.identity.federation.code_flow import Federation
from remuda.identity.federation.providers import Providers
from remuda.identity.login.account_pages import AccountPage
from remuda.identity.login.attempts import Attempts
from remuda.identity.login.audit import Records
from remuda.identity.login.browser_sessions import Logins
from remuda.identity.login.browser_state import FamiliarCookie
from remuda.identity.login.cookies import BrowserCookie
from remuda.identity.login.device_page import DevicePage
from remuda.identity.login.facade import Browser
from remuda.identity.login.leaving import Exit
from remuda.identity.login.login_pages import Entry
from remuda.identity.login.pages import Pages
from remuda.identity.login.password_pages import PasswordPages
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import Passing
from remuda.identity.login.states import States
from remuda.identity.oauth.clients import Clients
from remuda.identity.oauth.codes import Codes
from remuda.identity.oauth.devices import Devices
from remuda.identity.ports import IdentityPorts
from remuda.identity.rbac.bindings import Bindings
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import Sessions


def login_room(
    ports: IdentityPorts,
    *,
    clients: Clients,
    codes: Codes,
    devices: Devices,
    sessions: Sessions,
    tokens: Tokens,
    passwords: Passwords,
) -> Browser:
    """Return the room, put together from its ports and what other rooms have."""
    store, clock, settings = ports.store, ports.clock, ports.settings
    cookie, pages = BrowserCookie(settings.issuer), Pages(settings.issuer)
    familiar = FamiliarCookie(settings.issuer, sealer=ports.sealer, clock=clock, randomness=ports.randomness)
    states = States(sealer=ports.sealer, clock=clock)
    attempts = Attempts(clock=clock, per_minute=settings.logins_per_minute)
    records = Records(store=store, log=ports.log)
    logins = Logins(store=store, clock=clock, randomness=ports.randomness, sessions=sessions)
    entry = Entry(
        store=store,
        randomness=ports.randomness,
        settings=settings,
        cookie=cookie,
        familiar=familiar,
        states=states,
        pages=pages,
        logins=logins,
        passing=Passing(clock=clock, settings=settings, pages=pages, logins=logins, codes=codes, clients=clients),
        passwords=passwords,
        attempts=attempts,
        providers=Providers(store=store, settings=settings),
        federation=Federation(fetch=ports.fetch, clock=clock, randomness=ports.randomness, settings=settings),
        clients=clients,
        tokens=tokens,
        records=records,
    )
    return Browser(
        cookie=cookie,
        familiar=familiar,
        entry=entry,
        account=AccountPage(
            store=store,
            settings=settings,
            bindings=Bindings(settings),
            states=states,
            pages=pages,
            logins=logins,
            sessions=sessions,
            clients=clients,
            passwords=passwords,
            records=records,
            entry=entry,
        ),
        exit=Exit(
            settings=settings,
            cookie=cookie,
            states=states,
            pages=pages,
            logins=logins,
            clients=clients,
            tokens=tokens,
            records=records,
        ),
        devices=DevicePage(
            states=states,
            pages=pages,
            logins=logins,
            attempts=attempts,
            devices=devices,
            clients=clients,
            records=records,
            entry=entry,
        ),
        passwords=PasswordPages(
            store=store,
            settings=settings,
            pages=pages,
            logins=logins,
            passwords=passwords,
            attempts=attempts,
            records=records,
        ),
    )
