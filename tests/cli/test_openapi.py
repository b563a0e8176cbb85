import msgspec
import pytest

import remuda.cli.commands.export
from remuda.app import Published
from remuda.cli import main
from tests.kit.sample_api.pipeline import table


def test_the_document_of_a_service_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remuda.cli.commands.export, "tables", lambda: {"sample": Published("/sample", table())})
    assert main(["openapi", "sample"]) == 0
    printed = msgspec.json.decode(capsys.readouterr().out)
    assert (printed["openapi"], printed["info"]["title"]) == ("3.1.0", "Sample")
    assert printed["servers"] == [{"url": "/sample"}]


def test_this_release_prints_what_a_process_says_about_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openapi", "process"]) == 0
    printed = msgspec.json.decode(capsys.readouterr().out)
    assert "/readyz" in printed["paths"]
    assert printed["servers"] == [{"url": "/"}]


def test_the_document_of_identity_is_printed_as_it_is_mounted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openapi", "identity"]) == 0
    printed = msgspec.json.decode(capsys.readouterr().out)
    assert "/api/v1/organizations" in printed["paths"]
    assert "/api/v1/operator/tokens" in printed["paths"]
    assert printed["servers"] == [{"url": "/identity"}]


def test_the_document_of_region_is_printed_as_it_is_mounted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openapi", "region"]) == 0
    printed = msgspec.json.decode(capsys.readouterr().out)
    assert {"/api/v2/networks", "/api/v2/servers/{serverID}"} <= set(printed["paths"])
    assert printed["servers"] == [{"url": "/region"}]


def test_an_unknown_service_is_told_which_there_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        remuda.cli.commands.export, "tables", lambda: dict.fromkeys(["region", "identity"], Published("", table()))
    )
    assert main(["openapi", "nonsense"]) == 1
    assert capsys.readouterr() == ("", "The service nonsense does not exist: use one of identity, region.\n")


def test_a_release_without_services_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remuda.cli.commands.export, "tables", dict)
    assert main(["openapi", "nonsense"]) == 1
    assert capsys.readouterr() == ("", "The service nonsense does not exist: this release has no services.\n")
