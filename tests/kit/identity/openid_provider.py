"""An OpenID provider of our own making, which can be made to lie in every way that we must notice."""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from remuda.identity.ports import Fetched
from remuda.kernel.errors import ServerUnreachable
from tests.kit.simulation.loop import SimClock

IDP = "https://idp.test/realm"
CLIENT, SECRET = "remuda at idp", "a secret: with signs/&"


@dataclass
class Provider:
    """Answers as `Fetch` does, for one issuer."""

    clock: SimClock | None = None
    issuer: str = IDP
    key: Any = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    email: str = "jo@example.com"
    claims: dict[str, Any] = field(default_factory=dict)
    """What it says otherwise than it should; None leaves a claim out."""
    about: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] | None = None
    algorithm: str = "RS256"
    header: dict[str, Any] = field(default_factory=dict)
    signing_key: Any = None
    id_token: str = ""
    """What it hands out in the place of an ID token."""
    access_token: str = "upstream-token"
    is_down: bool = False
    token_status: int = 200
    asked: list[tuple[str, str]] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)
    """The organizations for which it was asked."""
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    async def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, organization: str
    ) -> Fetched:
        self.asked.append((method, url))
        self.asked_for.append(organization)
        if self.is_down:
            raise ServerUnreachable("idp.test", "it is down")
        answer: Any
        match url.removeprefix(self.issuer):
            case "/.well-known/openid-configuration":
                answer = self._description() | self.about
            case "/jwks":
                answer = KeySet([self.key]).as_dict(private=False)
            case "/token":
                return self._exchange(headers, dict(parse_qsl((body or b"").decode())))
            case "/userinfo":
                assert headers["Authorization"] == f"Bearer {self.access_token}"
                answer = self.userinfo
            case _:
                return Fetched(status=404, body=b"")
        return Fetched(status=200, body=msgspec.json.encode(answer))

    def authorize(self, location: str) -> dict[str, str]:
        """Let the user in, and return the query of the callback."""
        assert location.startswith(f"{self.issuer}/authorize?")
        asked = dict(parse_qsl(urlsplit(location).query))
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.issuer}

    def _description(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "authorization_response_iss_parameter_supported": True,
        }

    def _exchange(self, headers: dict[str, str], form: dict[str, str]) -> Fetched:
        if self.token_status != 200:
            return Fetched(status=self.token_status, body=b"{}")
        asked = self._codes.pop(form["code"], None)
        if asked is None:
            return Fetched(status=400, body=b'{"error": "invalid_grant"}')
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if _base64(digest) != asked["code_challenge"]:
            return Fetched(status=400, body=b'{"error": "invalid_grant"}')
        assert form["redirect_uri"] == asked["redirect_uri"]
        basic = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
        assert basic == "remuda%20at%20idp:a%20secret%3A%20with%20signs%2F%26"
        token = {
            "id_token": self.id_token or self._id_token(asked),
            "access_token": self.access_token,
            "token_type": "Bearer",
        }
        return Fetched(status=200, body=msgspec.json.encode(token))

    def _id_token(self, asked: dict[str, str]) -> str:
        assert self.clock is not None
        now = int(self.clock.now().timestamp())
        said = {
            "iss": self.issuer,
            "sub": "42",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "email": self.email,
            "email_verified": True,
        }
        claims = {name: value for name, value in (said | self.claims).items() if value is not None}
        return self._signed({"alg": self.algorithm, "kid": "one"} | self.header, claims)

    def _signed(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        """Sign as no decent library would: without a key, with the public key as a secret, under any header."""
        signed = ".".join(_base64(msgspec.json.encode(part)) for part in (header, claims))
        if self.algorithm == "none":
            return f"{signed}."
        if self.algorithm == "HS256":
            made = hmac.digest(self.key.as_pem(private=False), signed.encode(), "sha256")
            return f"{signed}.{_base64(made)}"
        if self.algorithm == "RS256":
            key = (self.signing_key or self.key).private_key
            return f"{signed}.{_base64(key.sign(signed.encode(), PKCS1v15(), SHA256()))}"
        return jwt.encode(header, claims, self.signing_key or self.key, algorithms=[self.algorithm])


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def other_key(kind: str) -> Any:
    """Return a key that is not the provider's."""
    made: dict[str, Any] = {
        "RSA": lambda: RSAKey.generate_key(2048, {"kid": "one"}),
        "EC": lambda: ECKey.generate_key("P-256", {"kid": "one"}),
    }
    return made[kind]()
