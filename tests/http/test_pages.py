from pathlib import Path
from typing import Any

import pytest

from remuda.http.errors import INTERNAL
from remuda.http.pages import PAGE_HEADERS
from remuda.http.responses import HtmlPage, Redirect
from remuda.http.routes import Table
from remuda.kernel.errors import Forbidden, Unauthenticated, Unavailable
from tests.kit.asgi.contract import UndocumentedError
from tests.kit.sample_api.browser import HTML, Open, opened, route


def tell(tack: Open, reply: Any) -> None:
    def act() -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    tack.service.reply = act


async def test_a_page_says_what_keeps_it_safe(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        reply = await tack.client.get("/login")
        assert (reply.status, reply.body.decode(), reply.headers["content-type"]) == (
            200,
            HTML,
            "text/html; charset=utf-8",
        )
        assert {name: reply.headers[name.lower()] for name in PAGE_HEADERS} == PAGE_HEADERS
        assert "default-src 'none'" in reply.headers["content-security-policy"]


async def test_a_page_may_have_a_status_cookies_and_a_policy_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        policy = "default-src 'none'; form-action 'self' https://client.example"
        own = {"content-security-policy": policy, "Set-Cookie": "a=1"}
        tell(tack, HtmlPage(HTML, status=401, headers=own, cookies=("b=2; HttpOnly", "c=3")))
        reply = await tack.client.get("/login")
        assert (reply.status, reply.headers["content-security-policy"]) == (401, policy)
        assert reply.cookies == ("a=1", "b=2; HttpOnly", "c=3")


async def test_a_redirect_leads_elsewhere_and_may_set_cookies(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, Redirect("https://client.example/cb?code=a%20b&state=é #x", cookies=("a=1", "b=2")))
        for reply in (
            await tack.client.get("/login"),
            await tack.client.get("/callback"),
            await tack.client.post("/leave"),
        ):
            assert (reply.status, reply.body) == (302, b"")
            assert reply.headers["location"] == "https://client.example/cb?code=a%20b&state=%C3%A9%20#x"
            assert reply.cookies == ("a=1", "b=2")
            assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "reply",
    [
        Redirect("https://client.example/\r\nset-cookie: a=1"),
        Redirect("https://client.example/", headers={"X-Frame-Options": "a\nb: c"}),
        Redirect("https://client.example/", cookies=("a=1\r\nb: c",)),
        HtmlPage(HTML, headers={"Referrer-Policy": "a\x00"}),
    ],
)
async def test_a_header_never_ends_its_line(tmp_path: Path, reply: Any) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, reply)
        answer = await tack.client.get("/login")
        assert answer.status == 500
        assert "location" not in answer.headers
        assert answer.cookies == ()


async def test_a_route_that_does_not_redirect_by_rule_still_answers(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, None)
        assert (await tack.client.post("/leave")).status == 204


ERRORS = [
    (Unauthenticated("the password is not right"), 401, "the password is not right"),
    (Unavailable("The keys are being read: try again."), 503, "The keys are being read: try again."),
    (RuntimeError("secret-name"), 500, INTERNAL),
]


@pytest.mark.parametrize(("error", "status", "told"), ERRORS)
async def test_what_goes_wrong_on_a_page_is_a_page(tmp_path: Path, error: Exception, status: int, told: str) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, error)
        reply = await tack.client.get("/login", accept="text/html,*/*")
        assert (reply.status, reply.media) == (status, "text/html")
        assert told in reply.body.decode()
        assert {name: reply.headers[name.lower()] for name in PAGE_HEADERS} == PAGE_HEADERS
        assert "secret-name" not in reply.body.decode()


async def test_an_error_on_a_page_shows_its_trace_id_and_nothing_as_markup(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, Unauthenticated("<script>alert(1)</script> is not right"))
        page = await tack.client.get("/login")
        assert b"<script>" not in page.body
        assert b"&lt;script&gt;" in page.body
        assert page.headers["www-authenticate"].startswith("Bearer ")
        told = await tack.client.get("/login", accept="application/json")
        assert (told.status, told.json["error"]) == (401, "access_denied")
        assert len(told.json["trace_id"]) == 32


async def test_what_the_kernel_rejects_on_a_page_is_a_page_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        for reply in (
            await tack.client.post("/login", form={"user": "anna"}),
            await tack.client.post("/login", form={"user": "anna", "password": "x"}, idempotency_key="k"),
            await tack.client.get("/login", if_match='"x"'),
        ):
            assert (reply.status, reply.media) == (400, "text/html")
        assert (await tack.client.send("DELETE", "/login")).media == "application/json", "no route, no page"


async def test_a_page_may_be_asked_for_its_head(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        reply = await tack.client.send("HEAD", "/login")
        assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", str(len(HTML)))


async def test_the_validator_knows_a_page_that_is_none_and_a_redirect_to_nowhere(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        contract_breakers = [
            HtmlPage("no page at all"),
            HtmlPage(HTML, headers={"X-Frame-Options": "SAMEORIGIN"}),
            HtmlPage(HTML, headers={"X-Other": "1"}),
            HtmlPage(HTML, status=203),
        ]
        for reply in contract_breakers:
            tell(tack, reply)
            with pytest.raises(UndocumentedError):
                await tack.client.get("/login")
        tell(tack, Forbidden("no"))
        with pytest.raises(UndocumentedError, match="403 is not documented"):
            await tack.client.get("/login")
        with pytest.raises(AssertionError):
            tack.api.assert_documented()
        tack.api.forgive()


@pytest.mark.parametrize(
    "more",
    [
        {"page": True, "oauth": True},
        {"page": True, "response_type": list[str]},
        {"oauth": True, "response_type": list[str]},
    ],
)
def test_a_route_has_one_manner(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="of which it can be one"):
        Table("x", title="x", description="x", routes=[route("GET", "/x", "x", **more)])


def test_declared_headers_are_in_lower_case() -> None:
    with pytest.raises(ValueError, match="not in lower case"):
        Table("x", title="x", description="x", routes=[route("GET", "/x", "x", headers=("Cookie",))])
