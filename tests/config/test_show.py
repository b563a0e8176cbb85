import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.config.loader import load
from remuda.config.schema import SETTINGS
from remuda.config.show import as_toml, toml_value

FILE = """
[server]
data = "/var/lib/remuda"
[identity]
access_token_lifetime = "90m"
role_bindings = [{ subject = "ann@example.com", roles = ["platform-reader"], issuer = "https://a.example.com" }]
group_bindings = [{ issuer = "https://a.example.com", group = 'O"ps', roles = ["platform-reader"] }]
[identity.system_accounts."odd name"]
role = "platform-reader"
[identity.bootstrap]
password = "correct horse battery"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "remuda.toml"
    path.write_text(FILE)
    return path


def test_what_is_shown_is_toml_that_says_the_same_again(file: Path, tmp_path: Path) -> None:
    environment = {"REMUDA_LISTEN": "[::1]:1"}
    first = load(environment, file=file)
    again = tmp_path / "again.toml"
    again.write_text(as_toml(first).replace('password = "…"', 'password = "correct horse battery"'))
    assert load({}, file=again).configuration == first.configuration


def test_each_value_says_where_it_comes_from(file: Path) -> None:
    lines = as_toml(
        load({"REMUDA_SERVER__RATE_LIMIT": "5"}, file=file, flags={"server.listen": "[::1]:1"})
    ).splitlines()
    assert 'listen = "[::1]:1"  # --listen' in lines
    assert "rate_limit = 5  # REMUDA_SERVER__RATE_LIMIT" in lines
    assert f'access_token_lifetime = "1h30m"  # {file}' in lines
    assert 'refresh_token_lifetime = "90d"  # default' in lines
    assert lines[0].startswith(f"# File: {file}.")


def test_secrets_are_not_shown_and_what_is_not_set_is_a_comment(file: Path) -> None:
    shown = as_toml(load({}, file=file))
    assert "correct horse" not in shown
    assert 'password = "…"' in shown
    assert '# password = ""  # default' in as_toml(load({"XDG_DATA_HOME": "/srv"})).splitlines()


def test_a_default_that_follows_from_other_settings_is_shown_with_its_value(tmp_path: Path) -> None:
    lines = as_toml(load({"XDG_DATA_HOME": "/srv"}, flags={"server.listen": "[::1]:9"})).splitlines()
    assert '# public_url = "http://[::1]:9"  # default' in lines
    assert '# issuer = "http://[::1]:9/identity"  # default' in lines
    (tmp_path / "remuda.toml").write_text('[server]\npublic_url = "https://cloud.example.com"\n')
    lines = as_toml(load({"XDG_DATA_HOME": "/srv"}, file=tmp_path / "remuda.toml")).splitlines()
    assert f'public_url = "https://cloud.example.com"  # {tmp_path / "remuda.toml"}' in lines
    assert '# issuer = "https://cloud.example.com/identity"  # default' in lines


def test_the_default_address_of_the_metrics_is_shown_as_one_and_no_address_as_none() -> None:
    environment = {"XDG_DATA_HOME": "/srv"}
    shown = as_toml(load(environment)).partition("[metrics]")[2]
    assert '# listen = "127.0.0.1:9464"  # default' in shown.splitlines()
    shown = as_toml(load({**environment, "REMUDA_METRICS__LISTEN": ""})).partition("[metrics]")[2]
    assert 'listen = ""  # REMUDA_METRICS__LISTEN' in shown.splitlines()


def test_every_setting_is_shown_with_what_it_means() -> None:
    shown = as_toml(load({"XDG_DATA_HOME": "/srv"}))
    flat = shown.replace("\n# ", " ")
    for setting in SETTINGS.values():
        assert setting.about.text in flat, setting.name
    tomllib.loads(shown)


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_whatever_is_written_is_read_as_the_same(value: object) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value
