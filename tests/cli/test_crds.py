import subprocess
import sys

import pytest
import yaml

from remuda.cli import main


def test_crds_prints_definitions_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    definitions = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [one["metadata"]["name"] for one in definitions] == ["journals.store.remuda"]
    (version,) = definitions[0]["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] == ["stream", "subject"]


def test_crds_needs_no_kubernetes_client() -> None:
    code = "import sys; from remuda.cli import main; main(['crds']); sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
