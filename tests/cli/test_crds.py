import subprocess
import sys

import pytest
import yaml

from remuda.app import registry
from remuda.cli import main


def test_crds_prints_definitions_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    definitions = list(yaml.safe_load_all(capsys.readouterr().out))
    by_name = {one["metadata"]["name"]: one for one in definitions}
    ours = {kind.qualified for kind in registry().kinds} | {"journals.store.remuda"}
    assert (set(by_name), len(definitions)) == (ours, len(ours))
    assert {"organizations.identity.unikorn-cloud.org", "servers.region.unikorn-cloud.org"} <= set(by_name)
    (version,) = by_name["journals.store.remuda"]["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] == ["stream", "subject"]


def test_crds_needs_no_kubernetes_client() -> None:
    code = "import sys; from remuda.cli import main; main(['crds']); sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
