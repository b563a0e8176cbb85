"""TLS of the metrics of a real process: whose certificate it is, and that other machines never read them in clear."""

import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from remuda.datadir import DataDirectory
from tests.kit.certificates import authority, client_context, server_files
from tests.kit.processes.program import refused, remuda, running

TOKEN = "0123456789abcdef"
HEADERS = {"authorization": f"Bearer {TOKEN}"}
PUBLIC = ("--public-url", "https://127.0.0.1")


def reachable(folder: Path, **more: str) -> Mapping[str, str]:
    """Return the variables of a process whose metrics other machines reach."""
    (folder / "token").write_text(TOKEN)
    return {"REMUDA_METRICS__LISTEN": "0.0.0.0:0", "REMUDA_METRICS__TOKEN_FILE": str(folder / "token"), **more}


def pair(section: str, folder: Path) -> Mapping[str, str]:
    files = server_files(folder)
    return {
        f"REMUDA_{section}__TLS_CERTIFICATE_FILE": str(files.certificate),
        f"REMUDA_{section}__TLS_KEY_FILE": str(files.key),
    }


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.1)


def shown_at(url: str) -> bytes:
    """Return the certificate that a server shows."""
    found = urlsplit(url)
    assert found.hostname is not None
    assert found.port is not None
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((found.hostname, found.port)))


@pytest.mark.parametrize("section", ["METRICS", "SERVER"])
def test_m27_metrics_that_other_machines_reach_have_tls_and_its_files_are_reloaded(
    tmp_path: Path, section: str
) -> None:
    given = reachable(tmp_path, **pair(section, tmp_path))
    with running(tmp_path / "data", environment=given) as one:
        assert one.metrics_url.startswith("https://127.0.0.1:")
        page = one.metrics(verify=client_context(), headers=HEADERS)
        assert (page.status_code, "remuda_build_info" in page.text) == (200, True)
        assert one.metrics(verify=client_context()).status_code == 401, "the token is needed as well"
        with pytest.raises(httpx2.TransportError):
            httpx2.get(one.metrics_url.replace("https:", "http:"), headers=HEADERS)
        found = remuda("doctor", "--data", str(one.data), environment=given)
        assert f"The metrics are at {one.metrics_url}." in found.stdout
        server_files(tmp_path, issuer=authority("other"), key="renewed")
        renewed = ssl.PEM_cert_to_DER_cert((tmp_path / "server.pem").read_text())
        until(lambda: shown_at(one.metrics_url) == renewed)
        (tmp_path / "server.pem").write_text("broken")
        assert one.metrics(verify=client_context(authority("other")), headers=HEADERS).status_code == 200


def test_a_self_signed_server_shares_its_certificate_with_the_metrics(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--tls", "self-signed", environment=reachable(tmp_path)) as one:
        own = ssl.PEM_cert_to_DER_cert(DataDirectory(one.data).certificate_of_process())
        assert shown_at(one.metrics_url) == own


def test_m27_metrics_in_clear_text_stay_on_this_machine_unless_that_is_accepted(tmp_path: Path) -> None:
    given, data = reachable(tmp_path), tmp_path / "data"
    said = refused(data, environment=given)
    assert said == (
        "metrics.listen = 0.0.0.0:0 sends the metrics and their token in clear text over the network: give it TLS "
        "(metrics.tls_certificate_file and metrics.tls_key_file, or TLS of the server), "
        "or accept that with --insecure."
    )
    assert refused(data, "127.0.0.1:0", *PUBLIC, environment=given) == said, "a proxy of the server is not in front"
    incomplete = {**given, "REMUDA_METRICS__TLS_KEY_FILE": "x"}
    assert refused(data, environment=incomplete).startswith("metrics.tls_certificate_file is missing")
    broken = {**given, **pair("METRICS", tmp_path)}
    (tmp_path / "server.key").write_text("broken")
    assert "cannot be used with the key" in refused(data, environment=broken)
    assert not data.exists()
    with running(data, "--insecure", environment=given) as one:
        assert one.metrics(headers=HEADERS).status_code == 200
    here = {**given, "REMUDA_METRICS__LISTEN": "127.0.0.1:0"}
    with running(data, "--tls", "self-signed", environment=here) as one:
        assert one.metrics_url.startswith("http://127.0.0.1:"), "only this machine reaches them"
