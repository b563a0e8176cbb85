"""docs/reference/configuration.md has every setting as the code has it."""

import dataclasses
import re
import tomllib
from functools import reduce
from pathlib import Path

from remuda.config.fields import Setting
from remuda.config.loader import load
from remuda.config.region_schema import ClusterConfig, ClusterNodeConfig, NodeGpuConfig
from remuda.config.schema import (
    SETTINGS,
    BearerTrustConfig,
    GroupRolesConfig,
    IdentityProviderConfig,
    SubjectRolesConfig,
    SystemAccountConfig,
)
from remuda.config.show import toml_value
from remuda.config.values import plain

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def row(setting: Setting) -> str:
    default = setting.about.shown or f"`{toml_value(plain(setting.default))}`"
    return f"| `{setting.path[-1]}` | {default} | {setting.about.text} |"


def test_every_setting_has_its_row_under_its_table() -> None:
    shown = re.findall(r"^## \[(.+)\]$|^(\| `\w+` \|.*\|.*\|)$", PAGE.read_text(), re.MULTILINE)
    table, rows = "", []
    for heading, line in shown:
        table = heading or table
        if line:
            rows.append((table, line))
    assert rows == [(".".join(setting.path[:-1]), row(setting)) for setting in SETTINGS.values()]


def test_what_the_page_calls_an_example_can_be_loaded(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "remuda.toml"
    path.write_text(example)
    configuration = load({}, file=path).configuration
    for section, settings in tomllib.loads(example).items():
        for name in settings:
            assert reduce(getattr, (section, name), configuration) is not None
    assert all(isinstance(each, SubjectRolesConfig) for each in configuration.identity.role_bindings)
    assert all(isinstance(each, GroupRolesConfig) for each in configuration.identity.group_bindings)
    assert isinstance(configuration.identity.system_accounts["ci"], SystemAccountConfig)
    assert configuration.identity.providers["google"].type == "google"
    assert isinstance(configuration.identity.providers["staff"].bearer_trust, BearerTrustConfig)
    assert configuration.region.kubernetes["garden"].nodes[0].gpu is not None


def test_what_an_entry_of_a_table_has_is_on_the_page() -> None:
    page = PAGE.read_text()
    for table in (
        SubjectRolesConfig,
        GroupRolesConfig,
        SystemAccountConfig,
        IdentityProviderConfig,
        BearerTrustConfig,
        ClusterConfig,
        ClusterNodeConfig,
        NodeGpuConfig,
    ):
        for each in dataclasses.fields(table):
            assert f"`{each.name}`" in page, f"{table.__name__}.{each.name}"
