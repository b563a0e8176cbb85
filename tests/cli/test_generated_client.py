"""A client that openapi-python-client generates from the document of a running process works against it."""

import json
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import httpx2

from tests.kit.processes.program import running

PROGRAM = Path(__file__).parents[1] / "kit" / "generated_client.py"


def test_a_generated_client_plans_creates_updates_and_deletes_an_instance(tmp_path: Path) -> None:
    with running(tmp_path / "data", environment={"REMUDA_REGION__INSTANT": "true"}) as one:
        generate(httpx2.get(f"{one.url}/openapi.json").content, tmp_path)
        (tmp_path / "program.py").write_text(PROGRAM.read_text())
        command = [sys.executable, "program.py", one.url, str(one.data / "credentials.json")]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        one.stop()
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert UUID(found.pop("id")) != UUID(found.pop("network"))
    assert found == {
        "idType": "UUID",
        "created": True,
        "status": "pending",
        "isDestructive": True,
        "steps": ["rebuild"],
        "fields": ["spec.imageId"],
        "destroyed": ["rootDisk", "sshHostKeys", "memory"],
        "downtime": "seconds",
        "staleCode": "plan_changed True",
        "updated": "image changed",
        "deleted": "not_found",
    }


def generate(document: bytes, directory: Path) -> None:
    """Generate the package `remuda_client`. A warning means that a part of the document was left out."""
    (directory / "remuda.json").write_bytes(document)
    (directory / "generator.yml").write_text("post_hooks: []\n")
    code = "from openapi_python_client.cli import app; app()"
    options = ["--path", "remuda.json", "--output-path", "remuda_client", "--meta", "none", "--config", "generator.yml"]
    command = [sys.executable, "-c", code, "generate", *options, "--fail-on-warning"]
    ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
