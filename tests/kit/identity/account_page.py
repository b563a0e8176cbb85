"""Text and forms of the account page."""

import html
import re

from tests.kit.asgi.contract import Reply
from tests.kit.identity.login import (
    Form,
    Forms,
)

PATH = "/oauth2/v2/account"


def text(reply: Reply) -> str:
    """Return what a page says, without its markup."""
    assert reply.status == 200, reply.body.decode()
    shown = re.sub(r"<style>.*</style>|</?time[^>]*>", "", reply.body.decode(), flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", shown).split()))


def form_with(page: Reply, button: str) -> tuple[int, Form]:
    """Return the form that has a button of this name, and its place."""
    found = [(place, form) for place, form in enumerate(Forms.of(page)) if button in dict(form.buttons)]
    assert len(found) == 1, f"{len(found)} forms with {button}"
    return found[0]
