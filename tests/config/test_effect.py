import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from remuda.config import settings as effect
from remuda.config.loader import Misconfigured, load
from remuda.config.reach import public_url
from remuda.config.schema import Configuration, IdentityConfig, ServerConfig
from remuda.http.api import ApiSettings
from remuda.http.ratelimit import RateLimit
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.server import ListenAddress
from remuda.identity.bootstrap import BootstrapSettings
from remuda.identity.settings import IdentitySettings, RoleBinding, SystemAccount
from remuda.kernel.errors import Invalid
from tests.kit.certificates import authority

URL = "http://127.0.0.1:8080"


def configured(text: str, tmp_path: Path) -> Configuration:
    path = tmp_path / "remuda.toml"
    path.write_text(text)
    return load({"XDG_DATA_HOME": "/srv"}, file=path).configuration


def test_every_setting_of_identity_can_be_set_and_has_the_same_default() -> None:
    ours, theirs = IdentityConfig(), IdentitySettings()
    told = effect.identity_settings(Configuration(), url=URL)
    assert told == dataclasses.replace(theirs, platform_administrators=("admin@remuda.local",), home=f"{URL}/")
    own = {each.name for each in dataclasses.fields(IdentitySettings)} - {"home"}
    assert own == {each.name for each in dataclasses.fields(ours)} - {"bootstrap"}
    elsewhere = Configuration(identity=IdentityConfig(issuer="https://login.example.com"))
    assert effect.identity_settings(elsewhere, url=URL).home == "", "the console does not get the cookie from there"
    assert effect.bootstrap_settings(Configuration()) == BootstrapSettings()


def test_the_defaults_of_the_server_are_those_of_its_parts() -> None:
    assert effect.connection_limits(ServerConfig()) == ConnectionLimits()
    assert effect.rate_limit(ServerConfig()) == RateLimit()
    told, default = effect.api_settings(ServerConfig()), ApiSettings()
    assert (told.body_limit, told.body_timeout_s, told.time_limit_s) == (
        default.body_limit,
        default.body_timeout_s,
        default.time_limit_s,
    )


def test_what_is_set_reaches_its_part(tmp_path: Path) -> None:
    text = """
    [server]
    rate_limit = 5
    forwarding_proxies = ["10.0.0.0/8"]
    certificate_proxies = ["192.0.2.0/24"]
    client_ca_file = "ca.pem"
    cors_origins = ["https://a.example.com"]
    head_timeout = "3s"
    read_timeout = "4s"
    idle_timeout = "5s"
    request_timeout = "6s"
    body_timeout = "7s"
    body_limit = 8
    connections = 9
    [identity]
    code_lifetime = "10s"
    platform_administrators = ["ann@example.com"]
    role_bindings = [{ subject = "bob@example.com", roles = ["platform-reader"] }]
    """
    (tmp_path / "ca.pem").write_text(authority().pem)
    configuration = configured(text, tmp_path)
    server, told = configuration.server, effect.identity_settings(configuration, url=URL)
    assert effect.connection_limits(server) == ConnectionLimits(head_s=3, read_stall_s=4, idle_s=5, connections=9)
    api = effect.api_settings(server)
    assert (api.body_limit, api.body_timeout_s, api.time_limit_s) == (8, 7, 6)
    assert ["10.1.2.3" in each for each in (api.forwarding, api.certificates)] == [True, False]
    assert ["192.0.2.3" in each for each in (api.forwarding, api.certificates)] == [False, True]
    assert (b"access-control-allow-origin", b"https://a.example.com") in api.cors.headers(b"https://b.example.com")
    assert effect.rate_limit(server).quota == 5
    assert told.code_lifetime == timedelta(seconds=10)
    assert told.platform_administrators == ("ann@example.com", "admin@remuda.local")
    assert told.role_bindings == (RoleBinding(subject="bob@example.com", roles=("platform-reader",)),)


@pytest.mark.parametrize(
    ("settings", "address", "url"),
    [
        ({}, ListenAddress("127.0.0.1", 9), "http://127.0.0.1:9"),
        ({}, ListenAddress("0.0.0.0", 9), "http://127.0.0.1:9"),
        ({}, ListenAddress("::", 9), "http://[::1]:9"),
        ({"public_url": "https://cloud.example.com"}, ListenAddress("0.0.0.0", 9), "https://cloud.example.com"),
    ],
)
def test_clients_come_by_the_public_url_or_the_address(
    settings: dict[str, str], address: ListenAddress, url: str
) -> None:
    server = ServerConfig(**settings)  # type: ignore[arg-type]  # settings by name
    assert public_url(server, address) == url
    configuration = Configuration(server=server)
    assert effect.identity_settings(configuration, url=url).issuer == f"{url}/identity"
    named = Configuration(identity=IdentityConfig(issuer="https://id.example.com"))
    assert effect.identity_settings(named, url=url).issuer == "https://id.example.com"


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "ci.pem").write_text("PEM")
    configuration = configured('identity.system_accounts.ci = { role = "r", public_key_file = "ci.pem" }', tmp_path)
    accounts = effect.identity_settings(configuration, url=URL).system_accounts
    assert accounts["ci"] == SystemAccount(role="r", public_key="PEM")


@pytest.mark.parametrize(
    ("account", "told"),
    [
        ('public_key_file = "absent"', r"\.ci\.public_key_file cannot be read from .*/absent \(No such file"),
        ('public_key_file = "binary"', r"\.ci\.public_key_file cannot be read from .* \(it is not text\)"),
        ('public_key_file = "binary", public_key = "x"', r"\.ci has both a public_key and a public_key_file"),
    ],
)
def test_a_key_that_cannot_be_read_is_one_sentence(account: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    configuration = configured(f'identity.system_accounts.ci = {{ role = "r", {account} }}', tmp_path)
    with pytest.raises(Invalid, match=told):
        effect.identity_settings(configuration, url=URL)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'identity.role_bindings = [{ subject = "*", roles = ["platform-reader"] }]',
            r"^identity\.role_bindings\[0\]\.subject matches all users of our own issuer: ",
        ),
        (
            'identity.system_accounts.ci = { role = "platform-reader", public_key = "PEM" }',
            r"^identity\.system_accounts\.ci\.public_key is not a supported key: give the PEM of ",
        ),
        (
            'identity.system_accounts.ci = { role = "platform-reader" }',
            r"^identity\.system_accounts\.ci cannot authenticate: give it a public_key, or set server\.client_ca_file ",
        ),
        (
            "server.certificate_proxies = ['10.0.0.0/8']",
            r"^server\.certificate_proxies needs server\.client_ca_file: name the PEM file of the authorities ",
        ),
        (
            "server.client_ca_file = 'absent.pem'",
            r"^server\.client_ca_file cannot be read from .*\(No such",
        ),
        ("server.client_ca_file = 'remuda.toml'", r"^server\.client_ca_file cannot be read from .* \(it has no cert"),
        ('identity.bootstrap.password = "short"', r"^identity\.bootstrap\.password is too short: "),
        ('identity.system_accounts.ci = { role = "r", public_key_file = "x" }', r"^identity\.system_accounts\.ci\."),
    ],
)
def test_what_only_shows_in_the_whole_is_told_by_its_name(text: str, told: str, tmp_path: Path) -> None:
    effect.check(Configuration())
    with pytest.raises(Misconfigured, match=told):
        effect.check(configured(text, tmp_path))
