"""What one organization's word is good for: its members log in, and are nobody outside of it."""

from typing import Any

import pytest

from remuda.identity.kinds.oauth import BrowserLogin
from remuda.identity.kinds.tenancy import Organization, OrganizationSpec
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import user_id
from remuda.resources.conventions import NAME
from remuda.store.objects import Metadata
from tests.kit.environment import provided_by
from tests.kit.identity.account_page import PATH, form_with, text
from tests.kit.identity.federation import ORG, OTHER_ORG, OWN, THEIRS, come_back, depart, federated, log_in
from tests.kit.identity.login import CONSOLE_URI, JO, PASSWORD, Browser, LoginEnvironment, sent_to
from tests.kit.identity.openid_provider import Provider

federation = provided_by(federated)
upstream = provided_by(federated, position=1)


async def in_acme(logins: LoginEnvironment) -> None:
    """Make Jo a member of an organization with a provider of its own."""
    await logins.provider(OWN, organization=ORG, **THEIRS)
    await logins.organization(ORG, domain="example.com", provider_scope="organization", provider_id=OWN)
    await logins.member(ORG, user_id(JO))


async def in_secret(logins: LoginEnvironment, state: Any = "active") -> None:
    """Make Jo a member of another organization."""
    metadata = Metadata(name=OTHER_ORG, labels={NAME: "secret"})
    await logins.store.create(Organization(metadata=metadata, spec=OrganizationSpec()))
    await logins.member(OTHER_ORG, user_id(JO), state)


async def by_own_provider(logins: LoginEnvironment, upstream: Provider) -> Browser:
    """Return a browser in which somebody logged in at the organization's provider, with a session of the console."""
    browser, gone = await depart(logins, OWN)
    tokens = await logins.exchange(sent_to(await come_back(browser, upstream, gone))["code"])
    assert tokens.status == 200
    return browser


@pytest.mark.parametrize("state", ["active", "suspended", "pending"])
async def test_what_another_organization_writes_about_somebody_locks_nobody_out(
    federation: LoginEnvironment, upstream: Provider, state: str
) -> None:
    await in_acme(federation)
    await in_secret(federation, state)
    assert "code" in sent_to(await log_in(federation, upstream, OWN))
    (login,) = (await federation.store.list(BrowserLogin)).items
    assert (login.spec.user, login.spec.provider) == (user_id(JO), OWN)


async def test_a_member_elsewhere_is_still_no_member_here(federation: LoginEnvironment, upstream: Provider) -> None:
    await federation.provider(OWN, organization=ORG, **THEIRS)
    await federation.organization(ORG, domain="example.com", provider_scope="organization", provider_id=OWN)
    await in_secret(federation)
    reply = await log_in(federation, upstream, OWN)
    assert reply.headers["location"].startswith(f"{CONSOLE_URI}&error=access_denied")


async def test_the_account_page_of_such_a_login_shows_that_organization_alone(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await in_acme(federation)
    await in_secret(federation)
    own = await federation.logged_in()
    vouched = await by_own_provider(federation, upstream)
    page = text(await vouched.get(PATH))
    assert "Your organizations org Sessions" in page
    assert page.count("End session") == 1
    assert "Other browsers" not in page
    assert "Change password" not in page
    assert "Second factor" not in page
    page = text(await own.get(PATH))
    assert "Your organizations org secret Second factor None" in page
    assert page.count("End session") == 2
    assert "Other browsers" in page
    assert "Change password" in page


async def test_such_a_login_ends_nothing_that_came_of_another_word(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await in_acme(federation)
    await federation.logged_in()
    (session,) = (await federation.store.list(Session)).items
    (login,) = (await federation.store.list(BrowserLogin)).items
    vouched = await by_own_provider(federation, upstream)
    page = await vouched.get(PATH)
    state = form_with(page, "session")[1].fields["state"]
    wanted = {"state": state, "session": session.name, "login": login.name}
    assert (await vouched.post(PATH, wanted)).status == 302
    assert session in (await federation.store.list(Session)).items
    assert login in (await federation.store.list(BrowserLogin)).items


async def test_such_a_login_ends_what_came_of_the_same_word(federation: LoginEnvironment, upstream: Provider) -> None:
    await in_acme(federation)
    await by_own_provider(federation, upstream)
    vouched = await by_own_provider(federation, upstream)
    page = await vouched.get(PATH)
    place, shown = form_with(page, "login")
    page = await vouched.follow(await vouched.submit(page, button=shown.buttons[0], form=place))
    assert "Other browsers" not in text(page)
    place, shown = form_with(page, "session")
    await vouched.submit(page, button=shown.buttons[0], form=place)
    assert not (await federation.store.list(Session)).items
    assert len((await federation.store.list(BrowserLogin)).items) == 1


async def test_a_browser_whose_sessions_are_older_than_the_organizations_word_is_not_logged_out_by_it(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await in_acme(federation)
    both = await federation.logged_in()
    page = await both.authorize(prompt="login")
    gone = await both.submit(page, email=JO, password="", provider=OWN)
    assert "code" in sent_to(await come_back(both, upstream, gone))
    (login,) = (await federation.store.list(BrowserLogin)).items
    assert login.spec.provider == OWN
    vouched = await by_own_provider(federation, upstream)
    page = await vouched.get(PATH)
    assert "Other browsers" not in text(page)
    state = form_with(page, "session")[1].fields["state"]
    assert (await vouched.post(PATH, {"state": state, "login": login.name})).status == 302
    assert login in (await federation.store.list(BrowserLogin)).items


async def test_such_a_login_does_not_change_the_password_without_the_old_one(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await in_acme(federation)
    vouched = await by_own_provider(federation, upstream)
    page = await vouched.get("/oauth2/v2/password")
    chosen = "another horse battery staple"
    for guess in ("", "wrong horse battery staple"):
        reply = await vouched.submit(page, email=JO, password=guess, new_password=chosen, repeated_password=chosen)
        assert reply.status == 401
    await federation.logged_in(JO, PASSWORD)
