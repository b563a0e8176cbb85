"""The page about proxies quotes the files that make test-proxies runs."""

import re
from pathlib import Path

import pytest

from remuda.config.loader import load

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "how-to" / "run-behind-a-proxy.md").read_text()
EXAMPLES = {"nginx": "nginx.conf", "caddy": "Caddyfile", "haproxy": "haproxy.cfg"}


@pytest.mark.parametrize(("language", "name"), EXAMPLES.items())
def test_m27_the_page_has_the_very_file_that_is_tested(language: str, name: str) -> None:
    (quoted,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert quoted == (DOCS / "examples" / name).read_text()


def test_every_example_is_on_the_page() -> None:
    assert {each.name for each in (DOCS / "examples").iterdir()} == set(EXAMPLES.values())


def test_the_settings_of_the_page_can_be_loaded(tmp_path: Path) -> None:
    (settings,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "remuda.toml"
    path.write_text(settings)
    configuration = load({}, file=path).configuration
    assert configuration.server.public_url == "https://cloud.example.com"
    assert configuration.server.listen.is_loopback
    assert configuration.server.certificate_proxies == configuration.server.forwarding_proxies == ("127.0.0.1",)
    assert configuration.identity.system_accounts["ci"].public_key_file is None
