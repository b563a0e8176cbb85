"""What make audit says about the lock, and the bill of materials that it writes."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.audit import main, pins_of
from tools.sbom import LOCK, SCHEMA, document

ROOT = Path(__file__).parents[1]
LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-uv.lock")
Said = pytest.CaptureFixture[str]
Advisories = Callable[[str, str], tuple[int, Any]]
"""Returns the status and content of an answer about a package and its version."""


@contextmanager
def database(answer: Advisories) -> Iterator[str]:
    """Serve a vulnerability database on this machine; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked: Mapping[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, content = answer(asked["package"]["name"], asked["version"])
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


def advisory(package: str, fixed_in: str) -> Mapping[str, Any]:
    events = [{"introduced": "0"}, {"fixed": fixed_in}]
    affected = {"package": {"name": package, "ecosystem": "PyPI"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {"id": "PYSEC-2026-1", "summary": "It leaks.", "details": "It leaks.", "affected": [affected]}


def said_of(lock: str, url: str, directory: Path, said: Said) -> tuple[int, list[str]]:
    path = directory / "some.lock"
    path.write_text(lock)
    code = main([str(path), "--service", "osv", "--osv-url", url])
    return code, said.readouterr().out.splitlines()


LOCKED = "good==1.0 \\\n    --hash=sha256:00\nbad==2.0 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n"


def test_m27_a_known_vulnerability_fails_the_audit_on_every_platform(tmp_path: Path, capsys: Said) -> None:
    with database(lambda name, _: (200, {"vulns": [advisory("bad", "2.1")] if name == "bad" else []})) as url:
        code, lines = said_of(LOCKED, url, tmp_path, capsys)
    assert code == 1
    assert lines == [
        "AUDIT: VULNERABLE: bad 2.0: PYSEC-2026-1, fixed in 2.1.",
        "AUDIT: FAILED: run make lock for a fixed release, or replace the package.",
        "AUDIT: 2 of 2 locked packages were checked.",
    ]


def test_a_lock_without_known_vulnerabilities_passes(tmp_path: Path, capsys: Said) -> None:
    with database(lambda *_: (200, {})) as url:
        code, lines = said_of(LOCKED, url, tmp_path, capsys)
    assert (code, lines) == (
        0,
        ["AUDIT: 2 of 2 locked packages were checked.", "AUDIT: PASSED: no known vulnerability."],
    )


@pytest.mark.parametrize("status", [404, 500])
def test_m27_a_database_that_answers_with_an_error_is_no_pass(status: int, tmp_path: Path, capsys: Said) -> None:
    with database(lambda *_: (status, {})) as url:
        code, lines = said_of(LOCKED, url, tmp_path, capsys)
    assert code == 0
    assert lines[0].startswith("AUDIT: The service osv had no data: ")
    assert lines[1] == (
        "AUDIT: NOT DONE for 2 of 2 locked packages (bad, good): there is no data about them. This is not a pass."
    )
    assert len(lines) == 2


def test_m27_a_database_that_cannot_be_reached_is_no_pass(tmp_path: Path, capsys: Said) -> None:
    with database(lambda *_: (200, {})) as url:
        pass
    code, lines = said_of(LOCKED, url, tmp_path, capsys)
    assert code == 0
    assert "NOT DONE for 2 of 2" in lines[-1]
    assert not any("PASSED" in line for line in lines)


def test_a_package_that_is_locked_twice_is_no_silent_gap(tmp_path: Path) -> None:
    path = tmp_path / "some.lock"
    path.write_text("one==1.0 ; os_name == 'nt'\none==2.0 ; os_name != 'nt'\n")
    with pytest.raises(ValueError, match="one is locked in two versions"):
        pins_of([path])


def test_every_pin_of_both_locks_is_audited() -> None:
    names = {
        canonicalize_name(found)
        for path in LOCKS
        for found in re.findall(r"^([\w.-]+)==", path.read_text(), re.MULTILINE)
    }
    assert set(pins_of(LOCKS)) == names
    assert {"uv", "msgspec"} <= names


def bill() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(document(LOCK.read_text(), datetime(2026, 1, 1, tzinfo=UTC)))
    return found


def test_m27_the_bill_of_materials_is_valid_cyclonedx() -> None:
    # Imported here alone: it builds grammars for seconds, and each worker imports this module.
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    text = document(LOCK.read_text(), datetime(2026, 1, 1, tzinfo=UTC))
    assert JsonStrictValidator(SCHEMA).validate_str(text) is None
    assert text == document(LOCK.read_text(), datetime(2026, 1, 1, tzinfo=UTC))


def test_m27_the_bill_of_materials_has_each_dependency_with_its_version_license_hashes_and_purl() -> None:
    found = {each["name"]: each for each in bill()["components"]}
    pins, hashes = pins_of(LOCKS), LOCK.read_text()
    for name, each in found.items():
        assert each["version"] == pins[name]
        assert each["purl"] == f"pkg:pypi/{name}@{pins[name]}"
        assert each["licenses"]
        assert each["hashes"]
        assert all(f"sha256:{one['content']}" in hashes for one in each["hashes"])


def test_the_bill_of_materials_has_what_the_wheel_needs_and_no_tool() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = {each["name"]: each["scope"] for each in bill()["components"]}
    for text in project["project"]["dependencies"]:
        assert found[canonicalize_name(Requirement(text).name)] == "required"
    for text in project["project"]["optional-dependencies"]["kubernetes"]:
        assert found[canonicalize_name(Requirement(text).name)] == "optional"
    assert not {"pytest", "ruff", "mypy", "pip-audit", "cyclonedx-python-lib", "remuda"} & found.keys()
    program = bill()["metadata"]["component"]
    assert (program["name"], program["licenses"]) == ("remuda", [{"expression": "Apache-2.0"}])
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill()["dependencies"]}
    assert f"pkg:pypi/msgspec@{pins_of(LOCKS)['msgspec']}" in needs[program["bom-ref"]]
