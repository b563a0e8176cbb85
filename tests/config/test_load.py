import re
from datetime import timedelta
from pathlib import Path

import pytest

from remuda.config.loader import LoadedConfiguration, Misconfigured, load
from remuda.config.schema import SETTINGS, SystemAccountConfig
from remuda.http.server.server import ListenAddress
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret

FILE = """
[server]
listen = "0.0.0.0:80"
forwarding_proxies = ["10.0.0.0/8"]
rate_limit = 10

[identity]
access_token_lifetime = "15m"
role_bindings = [{ subject = "ann@example.com", roles = ["platform-reader"] }]

[identity.system_accounts.ci]
role = "platform-reader"
public_key_file = "ci.pem"

[identity.bootstrap]
administrator = "root@example.com"
password = "correct horse battery"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "some.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    return path


def loaded(environment: dict[str, str] | None = None, **options: object) -> LoadedConfiguration:
    return load({"XDG_DATA_HOME": "/srv", **(environment or {})}, **options)  # type: ignore[arg-type]  # options by name


def problems(text: str, tmp_path: Path, environment: dict[str, str] | None = None) -> list[str]:
    path = tmp_path / "remuda.toml"
    path.write_text(text)
    with pytest.raises(Misconfigured) as caught:
        loaded(environment, file=path)
    return [each.replace(f" in {path}", "") for each in caught.value.problems]


def test_without_anything_all_is_as_the_defaults_say() -> None:
    found = loaded()
    assert found.configuration.server.listen == ListenAddress("127.0.0.1", 8080)
    assert found.configuration.server.data == Path("/srv/remuda")
    assert (found.origins, found.file) == ({}, None)


def test_a_file_sets_what_it_names(file: Path) -> None:
    found = loaded(file=file)
    server, identity = found.configuration.server, found.configuration.identity
    assert (server.listen, server.forwarding_proxies, server.rate_limit) == (
        ListenAddress("0.0.0.0", 80),
        ("10.0.0.0/8",),
        10,
    )
    assert identity.access_token_lifetime == timedelta(minutes=15)
    assert identity.refresh_token_lifetime == timedelta(days=90)
    assert identity.bootstrap.administrator == "root@example.com"
    assert identity.bootstrap.password == Secret("correct horse battery")
    assert [(each.subject, each.roles, each.issuer) for each in identity.role_bindings] == [
        ("ann@example.com", ("platform-reader",), "uni")
    ]
    assert found.origins["server.rate_limit"] == str(file)
    assert found.file == file


def test_named_tables_are_added_and_paths_begin_at_the_file(file: Path) -> None:
    accounts = loaded(file=file).configuration.identity.system_accounts
    assert accounts["ci"] == SystemAccountConfig(role="platform-reader", public_key_file=file.parent / "ci.pem")


def test_the_environment_goes_before_the_file_and_the_command_line_before_both(file: Path) -> None:
    environment = {
        "REMUDA_CONFIG": str(file),
        "REMUDA_SERVER__RATE_LIMIT": "20",
        "REMUDA_IDENTITY__ACCESS_TOKEN_LIFETIME": "5m",
        "REMUDA_SERVER__LISTEN": "127.0.0.1:1",
        "REMUDA_SERVER__CORS_ORIGINS": '["https://a.example.com", "https://b.example.com"]',
        "REMUDA_IDENTITY__SYSTEM_ACCOUNTS": '{ robot = { role = "platform-reader" } }',
    }
    found = loaded(environment, flags={"server.listen": "127.0.0.1:2", "server.data": None})
    server, identity = found.configuration.server, found.configuration.identity
    assert (server.listen.port, server.rate_limit, identity.access_token_lifetime) == (2, 20, timedelta(minutes=5))
    assert server.cors_origins == ("https://a.example.com", "https://b.example.com")
    assert {"robot", "ci"} == set(identity.system_accounts)
    assert found.origins["server.listen"] == "--listen"
    assert found.origins["server.rate_limit"] == "REMUDA_SERVER__RATE_LIMIT"
    assert found.origins["server.forwarding_proxies"] == str(file)


def test_a_named_file_goes_before_the_one_in_the_environment(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("[server]\nrate_limit = 7")
    assert loaded({"REMUDA_CONFIG": str(file)}, file=other).configuration.server.rate_limit == 7


def test_the_short_variables_set_what_they_always_did(tmp_path: Path) -> None:
    found = loaded({"REMUDA_DATA": str(tmp_path), "REMUDA_LISTEN": "[::1]:9"})
    assert (found.configuration.server.data, found.configuration.server.listen) == (tmp_path, ListenAddress("::1", 9))


def test_the_file_in_the_data_directory_is_read_if_no_other_is_named(tmp_path: Path) -> None:
    (tmp_path / "remuda.toml").write_text("[server]\nrate_limit = 3")
    for found in (loaded({"REMUDA_DATA": str(tmp_path)}), loaded(flags={"server.data": str(tmp_path)})):
        assert found.configuration.server.rate_limit == 3
        assert found.file == tmp_path / "remuda.toml"


def test_the_file_in_the_data_directory_cannot_name_another(tmp_path: Path) -> None:
    data = tmp_path / "remuda"
    data.mkdir()
    (data / "remuda.toml").write_text('[server]\ndata = "/elsewhere"')
    with pytest.raises(Invalid, match="is not the directory of the file: leave it out, or name the file"):
        loaded({"XDG_DATA_HOME": str(tmp_path)})
    assert loaded(flags={"server.data": str(data)}).configuration.server.data == data


def test_without_a_home_the_data_directory_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setenv("HOME", "/home/ann")
    assert load({}).configuration.server.data == Path("/home/ann/.local/share/remuda")
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(Invalid, match=r"^--data is not given, and there is no home directory: name a directory\.$"):
        load({})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[identity]\nisuer = 'x'", "identity.isuer is not a setting: did you mean identity.issuer?"),
        ("[identiy]\nissuer = 'x'", "identiy is not a setting: did you mean identity?"),
        ("[server]\nissuer = 'x'", "server.issuer is not a setting: did you mean identity.issuer?"),
        ("[server]\nzzzz = 1", "server.zzzz is not a setting: remuda config show lists all settings."),
        ("server = 1", "server is not a table: write its settings below [server]."),
        (
            "[server]\nrate_limit = '10'",
            "server.rate_limit is a text where a whole number is needed: write one such as 10, without quotes.",
        ),
        ("[server]\nrate_limit = true", "server.rate_limit is a boolean where a whole number is needed: "),
        ("[server]\nrate_limit = 0", "server.rate_limit is not positive: write a whole number of at least 1."),
        ("[server]\nrate_limit = 2024-01-01", "server.rate_limit is a date where a whole number is needed"),
        ("[server]\nlisten = '8080'", "server.listen is not HOST:PORT: give both, as in 127.0.0.1:8080."),
        ("[server]\ncors_origins = '*'", "server.cors_origins is a text where a list is needed"),
        ("[server]\ncors_origins = ['a.b']", "server.cors_origins[0] is not an origin"),
        ("[server]\nforwarding_proxies = ['10.0.0.1/8']", "server.forwarding_proxies[0] is not a network"),
        ("[server]\npublic_url = 'https://a.example.com/'", "server.public_url is not a plain URL"),
        ("[server]\npublic_url = 'https://[::1'", "server.public_url is not a plain URL"),
        ("[server]\ndata = '~nobody-of-that-name/x'", "server.data begins with ~, but that home directory"),
        (
            "[identity]\naccess_token_lifetime = 3600",
            'identity.access_token_lifetime is a number where a duration is needed: write a text such as "90d", "1h"',
        ),
        ("[identity]\naccess_token_lifetime = '1 hour'", "identity.access_token_lifetime is not a duration"),
        ("[identity]\naccess_token_lifetime = '0s'", "identity.access_token_lifetime is zero"),
        (
            "[[identity.role_bindings]]\nsubject = 'a@b.c'\nrols = []",
            "identity.role_bindings[0].rols is unknown: did you mean roles?",
        ),
        (
            "[[identity.role_bindings]]\nsubject = 'a@b.c'",
            "identity.role_bindings[0].roles is missing: names of roles.",
        ),
        ("identity.system_accounts.ci = 1", "identity.system_accounts.ci is a number where a table is needed"),
        ("identity.system_accounts.ci = {}", "identity.system_accounts.ci.role is missing"),
        ("identity.bootstrap.administrator = 'admin'", "identity.bootstrap.administrator is not an e-mail address"),
        ("identity.bootstrap.project = 'no good'", "identity.bootstrap.project is not a name"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_remedy(text: str, told: str, tmp_path: Path) -> None:
    (said,) = problems(text, tmp_path)
    assert said.startswith(told)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        (
            "REMUDA_IDENTITY__ISUER",
            "x",
            "REMUDA_IDENTITY__ISUER in the environment is not a setting: did you mean REMUDA_IDENTITY__ISSUER?",
        ),
        ("REMUDA_ISSUER", "x", "did you mean REMUDA_IDENTITY__ISSUER?"),
        ("REMUDA_LISTN", "x", "did you mean REMUDA_LISTEN?"),
        ("REMUDA_SERVER_LISTEN", "x", "did you mean REMUDA_SERVER__LISTEN?"),
        ("REMUDA_SERVER_RATELIMIT", "x", "did you mean REMUDA_SERVER__RATE_LIMIT?"),
        ("REMUDA_BOOTSTRAP_PASSWORD", "x", "did you mean REMUDA_IDENTITY__BOOTSTRAP__PASSWORD?"),
        ("REMUDA_CONFIGFILE", "x", "did you mean REMUDA_CONFIG?"),
        ("REMUDA_ZZZ__ZZZ", "x", "remuda config show lists all settings."),
        ("REMUDA_ZZZ", "", "remuda config show lists all settings."),
        ("REMUDA_PORT", "8080", "REMUDA_PORT in the environment is not a setting: "),
        ("REMUDA_SERVER__RATE_LIMIT", "many", "REMUDA_SERVER__RATE_LIMIT is not a whole number in TOML"),
        ("REMUDA_SERVER__RATE_LIMIT", "1\nx = 2", "REMUDA_SERVER__RATE_LIMIT is not a whole number in TOML"),
        ("REMUDA_SERVER__CORS_ORIGINS", "https://a.b", "REMUDA_SERVER__CORS_ORIGINS is not a list in TOML"),
        ("REMUDA_SERVER__CORS_ORIGINS", '["x"]', "REMUDA_SERVER__CORS_ORIGINS[0] is not an origin"),
        ("REMUDA_LISTEN", "x", "REMUDA_LISTEN is not HOST:PORT"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named_with_its_remedy(variable: str, value: str, told: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        loaded({variable: value})
    assert told in caught.value.message


@pytest.mark.parametrize("service", ["REMUDA", "REMUDA_API"])
def test_variables_that_kubernetes_makes_for_a_service_are_left_alone(service: str) -> None:
    links = {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "80",
        "SERVICE_PORT_HTTP": "80",
        "PORT": "tcp://10.0.0.1:80",
        "PORT_80_TCP": "tcp://10.0.0.1:80",
        "PORT_80_TCP_PROTO": "tcp",
        "PORT_80_TCP_PORT": "80",
        "PORT_80_TCP_ADDR": "10.0.0.1",
    }
    assert loaded({f"{service}_{name}": text for name, text in links.items()}).origins == {}


def test_variables_of_our_own_tests_are_left_alone() -> None:
    read = re.compile(r"os\.environ\b[^\n]{0,6}[\"'](REMUDA_[A-Z_]+)")
    tests = Path(__file__).parents[1].rglob("*.py")
    told = {name for path in tests for name in read.findall(path.read_text())}
    assert {"REMUDA_SEEDS", "REMUDA_KILLS", "REMUDA_FUZZ_SEED"} <= told
    assert loaded(dict.fromkeys(told, "5")).origins == {}


def test_everything_that_is_wrong_is_told_and_the_first_of_it_in_one_sentence(tmp_path: Path) -> None:
    text = "[server]\nrate_limit = 0\nlisten = 1\n[identity]\nisuer = ''"
    assert len(problems(text, tmp_path, {"REMUDA_SERVER__CONNECTIONS": "0"})) == 4
    with pytest.raises(Misconfigured) as caught:
        loaded(file=tmp_path / "remuda.toml")
    assert caught.value.message.endswith(" Further problems: 2. remuda config check lists them all.")


def test_no_sentence_quotes_a_value(tmp_path: Path) -> None:
    canary = "c4n4ry"
    for name, setting in SETTINGS.items():
        for value in (
            f"'{canary}'",
            f"['{canary}']",
            f"{{ {canary} = '{canary}' }}",
            f"{{ x = {{ y = '{canary}' }} }}",
        ):
            path = tmp_path / "remuda.toml"
            path.write_text(f"{name} = {value}")
            try:
                loaded(file=path)
            except Misconfigured as error:
                named = error.message.replace(f".{canary}", "")  # what somebody named is not a value
                assert canary not in named, setting.name


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[server]\nlisten = oops", r"is not TOML \(.* at line 2, column 10\): correct the file\.$"),
        (b"x = " + b"[" * 8_000, r"is nested too deeply: use less nesting\.$"),
        (b"a." * 5_000 + b"a = 1", r"has a line of more than 8192 characters: write it on several lines\.$"),
        (b"\xff\xfe", r"is not UTF-8 text: write it as TOML\.$"),
        (None, r"cannot be read \(No such file or directory\): name an existing, readable file\.$"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(content: bytes | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "remuda.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Invalid, match=told):
        loaded(file=path)
