"""External providers of the whole system, from the file to what identity is told."""

from pathlib import Path

import pytest

from remuda.config import settings as effect
from remuda.config.loader import Misconfigured, load
from remuda.config.schema import BearerTrustConfig, Configuration, IdentityProviderConfig
from remuda.config.show import as_toml
from remuda.identity.kinds.oauth import BearerTrust
from remuda.identity.settings import PlatformProvider
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret

URL = "https://cloud.example.com"
FILE = """
[identity.providers.google]
issuer = "https://accounts.google.com"
type = "google"
client_id = "us"
client_secret = "canary"

[identity.providers.staff]
issuer = "https://login.example.com"
[identity.providers.staff.bearer_trust]
audience = "us"
allow_external_identity = true
skip_email_verification = false
require_authz_claim = true
signing_algorithms = ["RS256", "ES256"]
groups_claim = "https://example.com/groups"
"""
TRUSTED = 'identity.providers.x = { issuer = "https://login.example.com", bearer_trust = { audience = "us"'


def configured(text: str, directory: Path) -> Configuration:
    path = directory / "remuda.toml"
    path.write_text(text)
    return load({"XDG_DATA_HOME": "/srv"}, file=path).configuration


def test_what_the_file_says_is_what_identity_is_told(tmp_path: Path) -> None:
    configuration = configured(FILE, tmp_path)
    effect.check(configuration)
    assert effect.identity_settings(configuration, url=URL).providers == {
        "google": PlatformProvider(
            issuer="https://accounts.google.com", type="google", client_id="us", client_secret=Secret("canary")
        ),
        "staff": PlatformProvider(
            issuer="https://login.example.com",
            bearer_trust=BearerTrust(
                audience="us",
                allow_external_identity=True,
                require_authz_claim=True,
                signing_algorithms=("RS256", "ES256"),
                groups_claim="https://example.com/groups",
            ),
        ),
    }


def test_the_defaults_of_trust_are_the_same_on_both_sides() -> None:
    told = Configuration().identity
    assert told.providers == {}
    trust = IdentityProviderConfig(issuer="https://x.example", bearer_trust=BearerTrustConfig(audience="us"))
    providers = effect.identity_settings(configured_with({"x": trust}), url=URL).providers
    assert providers["x"] == PlatformProvider(issuer="https://x.example", bearer_trust=BearerTrust(audience="us"))


def configured_with(providers: dict[str, IdentityProviderConfig]) -> Configuration:
    return Configuration(identity=type(Configuration().identity)(providers=providers))


def test_what_is_shown_says_the_same_again_but_for_the_secret(tmp_path: Path) -> None:
    path = tmp_path / "remuda.toml"
    path.write_text(FILE)
    first = load({"XDG_DATA_HOME": "/srv"}, file=path)
    shown = as_toml(first)
    assert "canary" not in shown
    assert "allow_external_identity = true" in shown
    path.write_text(shown.replace("…", "canary"))
    assert load({"XDG_DATA_HOME": "/srv"}, file=path).configuration == first.configuration


def test_a_provider_can_come_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "remuda.toml"
    path.write_text(FILE)
    more = '{ okta = { issuer = "https://okta.example.com", client_id = "us" } }'
    loaded = load({"XDG_DATA_HOME": "/srv", "REMUDA_IDENTITY__PROVIDERS": more}, file=path)
    assert loaded.configuration.identity.providers.keys() == {"google", "staff", "okta"}


def test_a_secret_can_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary\n")
    text = 'identity.providers.x = { issuer = "https://x.example", client_id = "us", client_secret_file = "secret" }'
    told = effect.identity_settings(configured(text, tmp_path), url=URL)
    assert told.providers["x"].client_secret == Secret("canary")


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ('client_secret_file = "absent"', r"^identity\.providers\.x\.client_secret_file cannot be read from .*absent"),
        ('client_secret_file = "x", client_secret = "y"', r"^identity\.providers\.x has both a client_secret and a "),
    ],
)
def test_a_secret_that_cannot_be_read_is_one_sentence(secret: str, told: str, tmp_path: Path) -> None:
    text = f'identity.providers.x = {{ issuer = "https://x.example", client_id = "us", {secret} }}'
    with pytest.raises(Invalid, match=told):
        effect.identity_settings(configured(text, tmp_path), url=URL)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("identity.providers.x = {}", r"identity\.providers\.x\.issuer is missing: its URL, exactly as"),
        (f'{TRUSTED}, allow_external_identity = "yes" }} }}', r"\.allow_external_identity is a text where a boolean "),
        (f"{TRUSTED}, require_authz_claim = 1 }} }}", r"\.require_authz_claim is a number where a boolean is needed: "),
        (f"{TRUSTED}, groups_claim = true }} }}", r"\.groups_claim is a boolean where a text is needed"),
        (
            f'{TRUSTED}, grups_claim = "x" }} }}',
            r"bearer_trust\.grups_claim is unknown: did you mean groups_claim",
        ),
        ('identity.providers.x = { issuer = "https://x.example", bearer_trust = {} }', r"trust\.audience is missing: "),
        ('identity.providers.x = { issuer = "https://x.example", type = "github" }', r"\.type is not a type of "),
    ],
)
def test_what_cannot_be_read_is_named_with_its_remedy(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=told.replace(" is ", r" in \S+ is ", 1)):
        configured(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f'{TRUSTED}, groups_claim = "groups" }} }}',
            r"^identity\.providers\.x\.bearer_trust\.groups_claim is not a URL: ",
        ),
        (f'{TRUSTED}, signing_algorithms = ["HS256"] }} }}', r"^identity\.providers\.x\.bearer_trust\.signing_algor"),
        ('identity.providers.x = { issuer = "https://x.example" }', r"^identity\.providers\.x is not usable: "),
        (
            'identity.providers.x = { issuer = "http://127.0.0.1:8080/identity", client_id = "us" }',
            r"^identity\.providers\.x\.issuer is our own issuer: ",
        ),
    ],
)
def test_what_only_shows_in_the_whole_is_told_by_its_name(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=told):
        effect.check(configured(text, tmp_path))
