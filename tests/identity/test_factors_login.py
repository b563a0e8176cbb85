"""Logging in with a second factor: an authenticator app, a recovery code, a passkey."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from remuda.http.audit import AuditRecord
from remuda.identity.factors.service import FREE_ATTEMPTS, delay_after
from remuda.identity.kinds.oauth import BrowserLogin
from remuda.identity.kinds.users import user_id
from remuda.kernel.encoding import from_base64url
from remuda.kernel.secrets import Secret
from tests.kit.identity.account_page import text
from tests.kit.identity.login import JO, PASSWORD, Forms, LoginEnvironment, sent_to
from tests.kit.identity.second_factor import (
    answer,
    challenged,
    enrolled,
    options_of,
    spec_of,
    with_passkey,
)
from tests.kit.identity.software_authenticator import FLAG, SecurityKey, app_code

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


async def claims_of(logins: LoginEnvironment, code: str) -> dict[str, object]:
    tokens = (await logins.exchange(code)).json
    claims: dict[str, object] = msgspec.json.decode(from_base64url(tokens["id_token"].split(".")[1]))
    return claims


async def test_m27_a_password_alone_logs_nobody_in_who_has_a_second_factor(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    before = len((await logins.store.list(BrowserLogin)).items)
    browser, page = await challenged(logins)
    assert "Code from your authenticator app" in text(page)
    assert len((await logins.store.list(BrowserLogin)).items) == before
    assert (await browser.authorize()).status == 200, "it is not logged in"
    done = await answer(browser, page, code=app_code(jo.key, logins.world.clock.now()))
    claims = await claims_of(logins, sent_to(done)["code"])
    assert (claims["amr"], claims["acr"]) == (["pwd", "otp", "mfa"], "2")
    assert claims["auth_time"] == int(logins.world.clock.now().timestamp())


async def test_an_id_token_of_a_password_alone_says_so(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    sent = await browser.submit(await browser.authorize(), email=JO, password=PASSWORD)
    claims = await claims_of(logins, sent_to(sent)["code"])
    assert (claims["amr"], claims["acr"]) == (["pwd"], "1")


async def test_m27_a_code_of_an_app_logs_in_once(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    (one, page), (other, other_page) = await challenged(logins), await challenged(logins)
    code = app_code(jo.key, logins.world.clock.now())
    replies = await asyncio.gather(answer(one, page, code=code), answer(other, other_page, code=code))
    assert sorted(reply.status for reply in replies) == [302, 401]
    third, third_page = await challenged(logins)
    assert "was used already" in (await answer(third, third_page, code=code)).body.decode()
    earlier = app_code(jo.key, logins.world.clock.now(), steps=-1)
    assert (await answer(third, third_page, code=earlier)).status == 401, "an earlier one is not accepted any more"


async def test_the_code_that_confirmed_an_app_does_not_log_in(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    (app,) = (await spec_of(logins)).apps
    browser, page = await challenged(logins)
    then = app.added
    assert (await answer(browser, page, code=app_code(jo.key, then))).status == 401


async def test_m27_a_recovery_code_logs_in_once(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    browser, page = await challenged(logins)
    typed = jo.codes[3].upper().replace("-", " ")
    sent = await answer(browser, page, recovery_code=typed)
    assert sent.status == 302
    assert "9 recovery codes left" in text(await browser.get("/oauth2/v2/account"))
    again, page = await challenged(logins)
    assert "was used already" in (await answer(again, page, recovery_code=jo.codes[3])).body.decode()
    assert (await answer(again, page, recovery_code=jo.codes[4])).status == 302


async def test_wrong_codes_slow_down_guesses_and_nothing_else(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    browser, page = await challenged(logins)
    for _ in range(FREE_ATTEMPTS + 1):
        assert (await answer(browser, page, code="000000")).status == 401
    right = app_code(jo.key, logins.world.clock.now())
    refused = await answer(browser, page, code=right)
    assert refused.status == 429
    assert "wait 15 s" in refused.body.decode()
    stranger, other_page = await challenged(logins)
    assert (await answer(stranger, other_page, code=right)).status == 429, "it holds for every unknown browser"
    assert (await answer(stranger, other_page, recovery_code=jo.codes[0])).status == 302
    _, known_page = await challenged(logins, jo.browser)
    assert (await answer(jo.browser, known_page, code=right)).status == 302, "a known browser is not delayed"


async def test_parallel_guesses_are_checked_one_after_the_other(logins: LoginEnvironment) -> None:
    await enrolled(logins)
    browser, page = await challenged(logins)
    guesses = [answer(browser, page, code=f"{number:06}") for number in range(20)]
    statuses = [reply.status for reply in await asyncio.gather(*guesses)]
    assert statuses.count(401) == FREE_ATTEMPTS + 1
    assert statuses.count(429) == 20 - FREE_ATTEMPTS - 1


def test_the_delay_doubles_up_to_a_quarter_of_an_hour_so_nobody_is_locked_out_for_ever() -> None:
    delays = [int(delay_after(wrong).total_seconds()) for wrong in range(12)]
    assert delays == [0, 0, 0, 0, 15, 30, 60, 120, 240, 480, 900, 900]
    assert delay_after(10**6) == timedelta(minutes=15)


async def test_known_browsers_together_guess_no_faster_than_ten_codes_in_ten_minutes(
    logins: LoginEnvironment,
) -> None:
    earlier = await logins.logged_in()
    jo = await enrolled(logins)
    statuses = []
    for browser in (jo.browser, earlier):
        _, page = await challenged(logins, browser)
        statuses += [(await answer(browser, page, code="000000")).status for _ in range(6)]
    assert statuses == [401] * 10 + [429] * 2


async def test_m27_a_password_alone_does_not_change_the_password_of_who_has_a_second_factor(
    logins: LoginEnvironment,
) -> None:
    jo = await enrolled(logins)
    thief, form = logins.browser(), {"email": JO, "password": PASSWORD}
    chosen = {"new_password": "another good password", "repeated_password": "another good password"}
    refused = await thief.post("/oauth2/v2/password", form | chosen)
    assert refused.status == 401
    assert "log in with it first" in refused.body.decode()
    assert not thief.cookies, "its browser is not known"
    link = await logins.services.passwords.create_link(user_id(JO))
    assert (await thief.post("/oauth2/v2/password", {"link": link.secret.reveal(), **chosen})).status == 200
    assert not thief.cookies
    await logins.world.clock.sleep(1)
    browser, page = await challenged(logins, password="another good password")
    await answer(browser, page, code=app_code(jo.key, logins.world.clock.now()))
    again = {"new_password": PASSWORD, "repeated_password": PASSWORD}
    own = {"email": JO, "password": "another good password", **again}
    assert "Your password is set" in text(await browser.post("/oauth2/v2/password", own))


async def test_the_second_step_belongs_to_its_browser_and_ends_with_the_password(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    browser, page = await challenged(logins)
    stranger, _ = await challenged(logins)
    code = app_code(jo.key, logins.world.clock.now())
    assert (await answer(stranger, page, code=code)).status == 400, "the state is another browser's"
    await logins.world.clock.sleep(1)
    await logins.services.passwords.set_password(user_id(JO), Secret("another good password"))
    assert (await answer(browser, page, code=code)).status == 400


async def test_the_second_step_expires_even_if_it_is_shown_again_and_again(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    browser, page = await challenged(logins)
    for _ in range(4):
        await logins.world.clock.sleep(8 * 60)
        page = await answer(browser, page, code="000000")
    code = app_code(jo.key, logins.world.clock.now())
    assert page.status == 400 or (await answer(browser, page, code=code)).status == 400


@pytest.mark.parametrize("counts", [True, False], ids=["counting", "without a counter"])
async def test_m27_a_passkey_logs_in_and_its_response_only_once(logins: LoginEnvironment, counts: bool) -> None:  # noqa: FBT001
    key = SecurityKey(counts=counts)
    await with_passkey(logins, key)
    browser, page = await challenged(logins)
    cookies, response = dict(browser.cookies), key.get(options_of(page))
    done = await answer(browser, page, credential=response)
    claims = await claims_of(logins, sent_to(done)["code"])
    assert (claims["amr"], claims["acr"]) == (["pwd", "pop", "mfa"], "2")
    browser.cookies = cookies
    assert (await answer(browser, page, credential=response)).status == 401, "the same challenge, answered again"


async def test_a_passkey_is_bound_to_the_challenge_the_site_and_the_key(logins: LoginEnvironment) -> None:
    key = SecurityKey(counts=False)
    await with_passkey(logins, key)
    browser, page = await challenged(logins)
    options = options_of(page)
    _, other = await challenged(logins)
    elsewhere = SecurityKey(origin="https://evil.test", counts=False, key=key.key)
    other_party = SecurityKey(rp_id="evil.test", counts=False, key=key.key)
    wrong = {
        "another challenge": key.get(options_of(other)),
        "another origin": elsewhere.get(options),
        "another relying party": other_party.get(options),
        "another key": SecurityKey(counts=False).get(options),
        "another credential": SecurityKey(counts=False, key=key.key, credential_id=b"unknown").get(options),
        "a registration": key.get(options, type="webauthn.create"),
        "nobody present": key.get(options, flags=FLAG(0)),
        "nonsense": "{}",
        "no JSON": "[",
    }
    statuses = {name: (await answer(browser, page, credential=sent)).status for name, sent in wrong.items()}
    assert statuses == dict.fromkeys(wrong, 401)
    assert (await answer(browser, page, credential=key.get(options))).status == 302


async def test_a_copied_passkey_is_noticed_by_its_counter_and_rejected(logins: LoginEnvironment) -> None:
    key = SecurityKey()
    await with_passkey(logins, key)
    copied = SecurityKey(key=key.key, count=0)
    for _ in range(2):
        browser, page = await challenged(logins)
        assert (await answer(browser, page, credential=key.get(options_of(page)))).status == 302
    browser, page = await challenged(logins)
    assert (await answer(browser, page, credential=copied.get(options_of(page)))).status == 401
    assert (await spec_of(logins)).events[0].type == "copied-passkey"


async def test_a_device_that_is_approved_has_the_second_factor_of_the_login(logins: LoginEnvironment) -> None:
    jo = await enrolled(logins)
    form = {"client_id": "b1111111-0000-4000-8000-000000000002", "scope": "openid"}
    device = (await logins.api.ask(None).post("/oauth2/v2/device_authorization", form=form)).json
    browser = logins.browser()
    login = await browser.submit(await browser.get("/oauth2/v2/device"), user_code=device["user_code"])
    page = await browser.submit(login, email=JO, password=PASSWORD)
    sent = await answer(browser, page, code=app_code(jo.key, logins.world.clock.now()))
    await browser.submit(await browser.follow(sent), button=("decision", "approve"))
    redeemed = {"grant_type": DEVICE_GRANT, "device_code": device["device_code"], "client_id": form["client_id"]}
    assert (await logins.api.ask(None).post("/oauth2/v2/token", form=redeemed)).status == 200
    (login_of_device,) = [each for each in (await logins.store.list(BrowserLogin)).items if each.spec.methods[1:]][-1:]
    assert login_of_device.spec.methods == ("pwd", "otp", "mfa")


async def test_a_failed_second_step_is_audited_without_what_was_typed(logins: LoginEnvironment) -> None:
    await enrolled(logins)
    browser, page = await challenged(logins)
    await answer(browser, page, code="271828")
    (entry,) = (await logins.store.read("audit", "system")).entries[-1:]
    record = msgspec.json.decode(entry.data, type=AuditRecord)
    told = record.actor.subject, record.operation.route, record.result.status
    assert told == (JO, "/oauth2/v2/login/factor", 401)
    assert b"271828" not in bytes(entry.data)


async def test_pages_without_passkeys_work_without_a_script_and_others_name_only_ours(logins: LoginEnvironment) -> None:
    await enrolled(logins)
    _, page = await challenged(logins)
    assert "<script" not in page.body.decode()
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert [sorted(form.fields) for form in Forms.of(page)] == [["code", "state"], ["recovery_code", "state"]]
