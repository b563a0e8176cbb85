"""Client credentials in the header Authorization, encoded as in a form."""

import base64

import pytest

from remuda.identity.oauth.clients import OAuthClientCredentials
from remuda.identity.oauth.schema import ClientForm
from remuda.kernel.errors import OAuthError


def read(pair: bytes) -> tuple[str, str]:
    header = f"Basic {base64.b64encode(pair).decode()}"
    credentials = OAuthClientCredentials.from_request(ClientForm(), header)
    assert credentials.secret is not None
    return credentials.client_id, credentials.secret.reveal()


@pytest.mark.parametrize(
    ("pair", "credentials"),
    [
        (b"app:secret", ("app", "secret")),
        (b"a%3Ab:c%25+d%C3%A9", ("a:b", "c% d\u00e9")),
        (b"app:100%", ("app", "100%")),
        (b"app:%zz+", ("app", "%zz+")),
        ("app:\u00e9:".encode(), ("app", "\u00e9:")),
        (b"app:" + b"s" * 10_000, ("app", "s" * 10_000)),
    ],
)
def test_an_id_and_a_secret_are_read(pair: bytes, credentials: tuple[str, str]) -> None:
    assert read(pair) == credentials


@pytest.mark.parametrize("pair", [b"app", b"app:%ff", b"app:\xff", b"app:" + b"s" * 13_000, b"%" * 46_000 + b":a"])
def test_m27_malformed_and_long_credentials_are_rejected(pair: bytes) -> None:
    with pytest.raises(OAuthError, match="malformed"):
        read(pair)
