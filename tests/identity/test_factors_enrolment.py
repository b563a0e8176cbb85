"""Adding, removing and resetting authenticators."""

import asyncio
import base64
import hashlib
import re

import msgspec
import pytest

from remuda.access.principal import AccessList, Context, Principal
from remuda.http.audit import AuditRecord
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login.account_pages import UPDATE_USERS
from remuda.identity.login.schema import FactorResetWrite
from remuda.kernel.errors import Forbidden, NotFound
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.account_page import form_with, text
from tests.kit.identity.login import COOKIE, JO, PASSWORD, Browser, Forms, LoginEnvironment
from tests.kit.identity.second_factor import (
    PATH,
    answer,
    at_factors,
    challenged,
    codes_of,
    enrolled,
    key_of,
    options_of,
    spec_of,
    with_passkey,
)
from tests.kit.identity.software_authenticator import SecurityKey, app_code
from tests.kit.store.disguises import disguises

ACME = "c0000000-0000-4000-8000-000000000003"
PROVIDER = "d1111111-0000-4000-8000-000000000001"


async def adding(browser: Browser, page: Reply, kind: str) -> Reply:
    place, _ = form_with(page, "kind")
    return await browser.submit(page, button=("kind", kind), form=place)


async def test_an_app_is_added_after_it_has_shown_a_code_and_its_secret_is_sealed(logins: LoginEnvironment) -> None:
    browser, page = await at_factors(logins)
    assert "You have none yet." in text(page)
    form = await adding(browser, page, "app")
    key = key_of(form)
    assert "<svg" in form.body.decode()
    wrong = await browser.submit(form, code="000000", name="phone")
    assert (wrong.status, key_of(wrong)) == (400, key), "the same key, so the app need not be set up again"
    with pytest.raises(NotFound):
        await spec_of(logins)
    shown = await browser.submit(wrong, code=app_code(key, logins.world.clock.now()), name="phone")
    assert len(codes_of(shown)) == 10
    page = await browser.get(PATH)
    assert "phone Authenticator app, added 1 Jan 2030" in text(page)
    assert "10 codes are left" in text(page)
    assert "The authenticator app “phone” was added." in text(page)
    assert not codes_of(page), "they are shown once"
    spec = await spec_of(logins)
    assert spec.apps[0].secret.reveal() == key.replace(" ", "")


async def test_several_authenticators_are_told_apart_by_name_and_removed_one_by_one(logins: LoginEnvironment) -> None:
    browser = await with_passkey(logins, SecurityKey())
    form = await adding(browser, await browser.get(PATH), "app")
    added = await browser.submit(form, code=app_code(key_of(form), logins.world.clock.now()), name="Passkey")
    assert "is that of another authenticator of yours" in added.body.decode()
    added = await browser.submit(added, code=app_code(key_of(added), logins.world.clock.now()))
    assert added.status == 302, "only the first one comes with recovery codes"
    page = await browser.get(PATH)
    assert [name for name, _ in form_with(page, "authenticator")[1].buttons] == ["authenticator", "authenticator"]
    for left in (1, 0):
        place, found = form_with(page, "authenticator")
        page = await browser.follow(await browser.submit(page, button=found.buttons[0], form=place))
        assert len((await spec_of(logins)).authenticators) == left
    spec = await spec_of(logins)
    assert not spec.recovery_hashes
    assert [each.type for each in spec.events] == ["removed", "removed", "app-added", "passkey-added"]
    assert (await browser.submit(await browser.authorize(prompt="login"), email=JO, password=PASSWORD)).status == 302


async def test_a_passkey_is_added_once_and_only_for_its_challenge(logins: LoginEnvironment) -> None:
    key = SecurityKey()
    browser = await with_passkey(logins, key)
    form = await adding(browser, await browser.get(PATH), "passkey")
    assert [each["type"] for each in options_of(form)["excludeCredentials"]] == ["public-key"]
    again = await browser.submit(form, credential=key.create(options_of(form)))
    assert "is already one of yours" in again.body.decode()
    other = SecurityKey(credential_id=b"another")
    stale = await browser.submit(form, credential=other.create({"challenge": "A" * 43}))
    assert "The passkey did not work" in stale.body.decode()
    assert len((await spec_of(logins)).passkeys) == 1


@options(issuer="http://127.0.0.1:8080/identity")
async def test_at_an_address_the_page_says_why_there_are_no_passkeys(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.get(PATH)
    state = Forms.of(page)[0].fields["state"]
    await browser.post("/oauth2/v2/login", {"state": state, "email": JO, "password": PASSWORD})
    page = await browser.get(PATH)
    assert "Passkeys are not possible at 127.0.0.1:8080: browsers allow them only at a name, over https." in text(page)
    assert [button for _, button in form_with(page, "kind")[1].buttons] == ["app"]


async def test_a_page_names_its_one_script_by_its_hash(logins: LoginEnvironment) -> None:
    await with_passkey(logins, SecurityKey())
    _, page = await challenged(logins)
    (script,) = re.findall(r"<script>(.*?)</script>", page.body.decode(), flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.headers["content-security-policy"]


async def test_m27_nothing_is_changed_without_a_recent_login_with_a_second_factor(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    page = await jo.browser.get(PATH)
    place, form = form_with(page, "authenticator")
    await logins.world.clock.sleep(600)
    await jo.browser.submit(page, button=form.buttons[0], form=place)
    assert (await spec_of(logins)).apps, "the login is too old"
    page = await jo.browser.get(PATH)
    assert "first confirm that it is you" in text(page)
    assert "Remove" not in text(page)
    login = await jo.browser.get(PATH, {"confirm": "yes"})
    asked = await jo.browser.submit(login, email=JO, password=PASSWORD)
    assert asked.status == 200
    assert (await jo.browser.get(PATH)).body.decode().count("Remove") == 0, "the password alone is not enough"
    sent = await answer(jo.browser, asked, code=app_code(jo.key, logins.world.clock.now()))
    page = await jo.browser.follow(sent)
    place, form = form_with(page, "authenticator")
    await jo.browser.submit(page, button=form.buttons[0], form=place)
    assert not (await spec_of(logins)).apps


async def test_a_login_without_a_second_factor_changes_nothing_once_there_is_one(logins: LoginEnvironment) -> None:
    early, page = await at_factors(logins)
    form = await adding(early, page, "app")
    await enrolled(logins)
    key = key_of(form)
    sent = await early.submit(form, code=app_code(key, logins.world.clock.now()))
    assert sent.status == 302
    assert len((await spec_of(logins)).apps) == 1
    assert "first confirm that it is you" in text(await early.get(PATH))


async def test_recovery_codes_are_replaced_all_at_once(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    page = await jo.browser.get(PATH)
    place = next(
        number for number, form in enumerate(Forms.of(page)) if form.action.endswith("/factors/recovery-codes")
    )
    shown = await jo.browser.submit(page, form=place)
    fresh = codes_of(shown)
    assert len(fresh) == 10
    assert not set(fresh) & set(jo.codes)
    browser, page = await challenged(logins)
    assert (await answer(browser, page, recovery_code=jo.codes[0])).status == 401
    assert (await answer(browser, page, recovery_code=fresh[0])).status == 302


async def test_a_login_through_an_organization_changes_nothing_of_the_user(logins: LoginEnvironment) -> None:
    await logins.organization(ACME)
    await logins.member(ACME, user_id(JO))
    await logins.provider(PROVIDER, organization=ACME, issuer="https://idp.test", client_id="x")
    browser, cookie = logins.browser(), "a" * 43
    browser.cookies[COOKIE] = cookie
    user = await logins.store.get(User, user_id(JO))
    await logins.services.login.logins.begin(user, cookie=cookie, provider=PROVIDER, previous=None)
    page = await browser.get(PATH)
    assert "To change your second factor, log in with your password." in text(page)
    assert "kind" not in page.body.decode()


async def test_changes_are_audited_in_the_organizations_of_the_user_without_secrets(logins: LoginEnvironment) -> None:
    await logins.organization(ACME)
    await logins.member(ACME, user_id(JO))
    jo = await enrolled(logins)
    page = await jo.browser.get(PATH)
    place, form = form_with(page, "authenticator")
    await jo.browser.submit(page, button=form.buttons[0], form=place)
    entries = (await logins.store.read("audit", f"organization/{ACME}")).entries
    records = [msgspec.json.decode(each.data, type=AuditRecord) for each in entries]
    told = [(each.operation.route, each.resource.type, each.resource.id) for each in records]
    authenticator = form.buttons[0][1]
    assert told[-2:] == [
        ("/oauth2/v2/enrolment", "secondfactors", authenticator),
        ("/oauth2/v2/factors/removal", "secondfactors", authenticator),
    ]
    everything = b"".join(bytes(each.data) for each in entries)
    assert not any(secret.encode() in everything for secret in (jo.key.replace(" ", ""), *jo.codes))


async def test_m27_a_platform_administrator_resets_what_was_lost_and_all_logins_end(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    await jo.browser.submit(await jo.browser.authorize(), button=("continue_as_current", "yes"))
    waiting, page = await challenged(logins)
    await logins.world.clock.sleep(1)
    await logins.services.factor_reset.reset(administrator(), FactorResetWrite(subject=JO))
    assert not (await spec_of(logins)).has_authenticator
    assert not (await logins.store.list(Session)).items
    assert "E-mail address" in text(await jo.browser.get(PATH)), "browsers are logged out"
    code = app_code(jo.key, logins.world.clock.now())
    assert (await answer(waiting, page, code=code)).status == 400, "the unfinished login begins again"
    _, page = await at_factors(logins)
    assert "A platform administrator removed all authenticators." in text(page)
    with pytest.raises(Forbidden):
        await logins.services.factor_reset.reset(
            Context(principal=Principal(subject=JO, type="user"), operation="x"), FactorResetWrite(subject=JO)
        )


def administrator() -> Context:
    access = AccessList(everywhere=frozenset({UPDATE_USERS}))
    return Context(principal=Principal(subject="root@example.com", type="user", access=access), operation="x")


async def test_two_additions_at_once_both_count(logins: LoginEnvironment) -> None:
    browser = await with_passkey(logins, SecurityKey())
    page = await browser.get(PATH)
    forms = [await adding(browser, page, "app") for _ in range(2)]
    now = logins.world.clock.now()
    await asyncio.gather(*(browser.submit(form, code=app_code(key_of(form), now)) for form in forms))
    assert [each.name for each in (await spec_of(logins)).apps] == ["Authenticator app", "Authenticator app 2"]


async def test_there_are_at_most_ten_authenticators(logins: LoginEnvironment) -> None:
    browser = await with_passkey(logins, SecurityKey())
    for number in range(10):
        form = await adding(browser, await browser.get(PATH), "app")
        sent = await browser.submit(form, code=app_code(key_of(form), logins.world.clock.now()))
        assert sent.status == (302 if number < 9 else 400), sent.body.decode()
    assert "10 are allowed" in sent.body.decode()


async def test_the_secret_of_an_app_and_recovery_codes_are_in_no_byte_of_the_store(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    secrets = [jo.key.replace(" ", ""), *jo.codes, *(code.replace("-", "") for code in jo.codes)]
    files = [path for path in logins.world.disk.directory.rglob("*") if path.is_file()]
    assert {"remuda.db", "remuda.db-wal"} <= {path.name for path in files}
    content = b"".join(path.read_bytes() for path in files)
    assert b"secondfactors" in content
    assert not [secret for secret in secrets for hidden in disguises(secret) if hidden in content]
