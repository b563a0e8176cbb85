"""The page after the login that shows who invites: to accept, to decline, to decide later."""

from remuda.identity.kinds.users import OrganizationUser, membership_id, user_id
from remuda.identity.tokens.secrets import s256
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.identity.account_page import PATH, text
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.login import ISSUER, Browser, Forms, sent_to

ANN, KIM, PASSWORD = "ann@acme.test", "kim@example.test", "correct horse battery staple"
CONSOLE_URI = "https://console.test/callback"
INVITATIONS = "/oauth2/v2/invitations"


def browser_of(identity: IdentityEnvironment) -> Browser:
    return Browser(Client(app=identity.asgi, contract=None, peer=("192.0.2.1", 4711)))


async def invite(identity: IdentityEnvironment, name: str, subject: str = KIM) -> str:
    """Make an organization whose administrator enters somebody, and return its id."""
    home = await identity.organization(name)
    group = await identity.group(home, "administrator")
    await identity.user(ANN, home, group)
    spec = {"subject": subject, "state": "active", "groupIDs": [group]}
    ann = identity.client(await identity.log_in(ANN))
    expect(await ann.post(f"{ORGANIZATIONS}/{home}/users", {"spec": spec}), 201)
    return home


async def log_in(browser: Browser, subject: str = KIM) -> Reply:
    return await browser.submit(await browser.get(PATH), email=subject, password=PASSWORD)


async def organizations_of(identity: IdentityEnvironment, subject: str = KIM) -> set[str]:
    listed = expect(await identity.client(await identity.log_in(subject)).get(ORGANIZATIONS), 200)
    return {each["metadata"]["id"] for each in listed}


def button(page: Reply, name: str, place: int = 0) -> tuple[str, str]:
    (form,) = Forms.of(page)
    return [each for each in form.buttons if each[0] == name][place]


async def test_m27_after_the_login_somebody_accepts_one_invitation_and_declines_another(
    identity: IdentityEnvironment,
) -> None:
    acme, blue, coy = [await invite(identity, name) for name in ("acme", "blue", "coy")]
    await identity.local(KIM, PASSWORD)
    browser = browser_of(identity)
    page = await log_in(browser)
    assert (page.status, "acme" in text(page), acme in text(page)) == (200, True, True)
    page = await browser.submit(page, button=button(page, "accept"))
    assert "acme" not in text(page)
    page = await browser.submit(page, button=button(page, "decline"))
    assert "coy" in text(page)
    left = await browser.submit(page, button=button(page, "later"))
    assert left.headers["location"] == f"{ISSUER}{PATH}"
    assert await organizations_of(identity) == {acme}
    account = await browser.follow(left)
    assert "acme" in text(account)
    assert "1 to accept or decline" in text(account)
    member = membership_id(blue, user_id(KIM))
    assert member not in {each.name for each in (await identity.store.list(OrganizationUser)).items}
    again = await browser.get(INVITATIONS)
    done = await browser.submit(again, button=button(again, "accept"))
    assert done.status == 302
    assert await organizations_of(identity) == {acme, coy}
    assert "No organization invites you." in text(await browser.get(INVITATIONS))


async def test_who_decides_later_is_asked_at_the_next_login_and_gets_to_where_it_was_going(
    identity: IdentityEnvironment,
) -> None:
    await invite(identity, "acme")
    await identity.local(KIM, PASSWORD)
    root = identity.client(identity.root)
    client = {"metadata": {"name": "console"}, "spec": {"redirectUris": [CONSOLE_URI]}}
    name = expect(await root.post("/api/v1/oauth2clients", client), 201)["metadata"]["id"]
    asked = {
        "client_id": name,
        "redirect_uri": CONSOLE_URI,
        "response_type": "code",
        "prompt": "login",
        "state": "s",
        "code_challenge": s256("v" * 43),
        "code_challenge_method": "S256",
    }
    browser = browser_of(identity)
    for _ in range(2):
        page = await browser.submit(await browser.get("/oauth2/v2/authorization", asked), email=KIM, password=PASSWORD)
        left = await browser.submit(page, button=button(page, "later"))
        assert left.headers["location"].startswith(f"{CONSOLE_URI}?")
        assert sent_to(left)["state"] == "s"
        assert "code" in sent_to(left)
    assert await organizations_of(identity) == set()


async def test_a_decision_counts_in_the_browser_that_was_asked(identity: IdentityEnvironment) -> None:
    acme = await invite(identity, "acme")
    await identity.local(KIM, PASSWORD)
    page = await log_in(browser_of(identity))
    await identity.local("mal@example.test", PASSWORD)
    other = browser_of(identity)
    await log_in(other, "mal@example.test")
    assert (await other.submit(page, button=button(page, "accept"))).status == 400
    assert (await browser_of(identity).submit(page, button=button(page, "accept"))).status == 400
    assert acme not in await organizations_of(identity)


async def test_somebody_decides_about_its_own_invitations_only(identity: IdentityEnvironment) -> None:
    acme, _ = await invite(identity, "acme"), await invite(identity, "blue", "mal@example.test")
    await identity.local("mal@example.test", PASSWORD)
    browser = browser_of(identity)
    page = await log_in(browser, "mal@example.test")
    for decision in ("accept", "decline"):
        page = await browser.submit(page, button=(decision, membership_id(acme, user_id(KIM))))
    kept = await identity.store.get(OrganizationUser, membership_id(acme, user_id(KIM)))
    assert kept.spec.invited


async def test_who_is_not_logged_in_is_shown_the_login_page(identity: IdentityEnvironment) -> None:
    assert "E-mail address" in text(await browser_of(identity).get(INVITATIONS))


async def test_who_is_asked_by_nobody_is_not_asked(identity: IdentityEnvironment) -> None:
    await identity.user(KIM, await identity.organization("acme"))
    await identity.local(KIM, PASSWORD)
    assert (await log_in(browser_of(identity))).status == 302


async def test_the_organization_sees_that_somebody_accepted_and_not_that_somebody_declined(
    identity: IdentityEnvironment,
) -> None:
    acme, blue = await invite(identity, "acme"), await invite(identity, "blue")
    await identity.local(KIM, PASSWORD)
    browser = browser_of(identity)
    page = await log_in(browser)
    page = await browser.submit(page, button=button(page, "accept"))
    await browser.submit(page, button=button(page, "decline"))
    root = identity.client(identity.root)
    for home, statuses in ((acme, [302]), (blue, [])):
        told = expect(await root.get(f"{ORGANIZATIONS}/{home}/audit", [("actor", KIM)]), 200)
        assert [each["result"]["status"] for each in told] == statuses
    system = expect(await root.get("/api/v1/audit", [("actor", KIM)]), 200)
    assert (403, INVITATIONS) in [(each["result"]["status"], each["operation"]["route"]) for each in system]


async def link_for(identity: IdentityEnvironment, subject: str, **body: str) -> str:
    root = identity.client(identity.root)
    link = expect(await root.post("/api/v1/passwords", {"subject": subject, **body}), 201)["link"]
    return str(link).removeprefix(ISSUER)


async def choose(identity: IdentityEnvironment, link: str, password: str = PASSWORD) -> None:
    path, _, query = link.partition("?")
    browser = browser_of(identity)
    page = await browser.get(path, [tuple(query.split("=", 1))])
    done = await browser.submit(page, new_password=password, repeated_password=password)
    assert "Your password is set" in text(done)


async def test_m27_the_first_password_accepts_the_organization_that_the_link_was_made_for(
    identity: IdentityEnvironment,
) -> None:
    acme, blue = await invite(identity, "acme"), await invite(identity, "blue")
    await choose(identity, await link_for(identity, KIM, organizationID=acme))
    assert await organizations_of(identity) == {acme}
    await choose(identity, await link_for(identity, KIM, organizationID=blue), "another good password")
    assert await organizations_of(identity) == {acme}, "a later password is no consent"


async def test_a_link_for_no_organization_accepts_none(identity: IdentityEnvironment) -> None:
    await invite(identity, "acme")
    await choose(identity, await link_for(identity, KIM))
    assert await organizations_of(identity) == set()


async def test_a_link_is_made_for_an_organization_that_has_entered_the_user(identity: IdentityEnvironment) -> None:
    await invite(identity, "acme")
    other = await identity.organization("other")
    root = identity.client(identity.root)
    reply = await root.post("/api/v1/passwords", {"subject": KIM, "organizationID": other})
    assert (reply.status, "organizationID" in reply.json["error_description"]) == (422, True)
