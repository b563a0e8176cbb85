"""Revocation lists of a real process: services by TLS and through a proxy, lists that change, expire and break."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.certificates import Issued, authority, client_context, server_files
from tests.kit.identity.service_credentials import principal
from tests.kit.processes.program import Running, refused, remuda, running

REVOKED = 66
NAME = "unikorn-compute"
GOOD, BAD = authority().issue(NAME), authority().issue(NAME, serial=REVOKED)


def environment(folder: Path, **more: str) -> Mapping[str, str]:
    """Return the variables of a process with TLS, a service with a certificate, and revocation lists."""
    files = server_files(folder)
    return {
        "REMUDA_SERVER__TLS_CERTIFICATE_FILE": str(files.certificate),
        "REMUDA_SERVER__TLS_KEY_FILE": str(files.key),
        "REMUDA_SERVER__CLIENT_CA_FILE": str(files.client_authorities),
        "REMUDA_SERVER__CLIENT_CRL_FILE": str(folder / "revoked.pem"),
        "REMUDA_IDENTITY__SYSTEM_ACCOUNTS": f'{{ {NAME} = {{ role = "compute-service" }} }}',
        **more,
    }


def replace(folder: Path, content: str) -> None:
    """Replace the file of lists as a whole."""
    (folder / "new").write_text(content)
    (folder / "new").rename(folder / "revoked.pem")


class Service:
    """Client with a certificate, whose connection stays open; or behind a proxy, which passes the certificate on."""

    def __init__(self, one: Running, shown: Issued, *, is_behind_proxy: bool) -> None:
        self._url = f"{one.url}/identity/api/v1/acl"
        self._headers = {"x-principal": principal({})}
        if is_behind_proxy:
            self._headers |= {"ssl-client-verify": "SUCCESS", "ssl-client-cert": shown.pem.replace("\n", "%0A")}
        self._client = httpx2.Client(verify=client_context(shown=None if is_behind_proxy else shown))

    def ask(self) -> tuple[int, str]:
        reply = self._client.get(self._url, headers=self._headers)
        return reply.status_code, reply.json().get("error_description", "")

    def close(self) -> None:
        self._client.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.1)


def findings(folder: Path, given: Mapping[str, str]) -> dict[str, Any]:
    found = remuda("doctor", "-o", "json", "--data", str(folder / "data"), environment=given)
    return {each["check"]: each for each in json.loads(found.stdout)["findings"]}


@pytest.mark.parametrize("is_behind_proxy", [False, True], ids=["tls", "proxy"])
def test_m27_a_revoked_certificate_counts_no_more_also_on_an_open_connection(
    tmp_path: Path, *, is_behind_proxy: bool
) -> None:
    proxies = {"REMUDA_SERVER__CERTIFICATE_PROXIES": '["127.0.0.1"]'} if is_behind_proxy else {}
    given = environment(tmp_path, **proxies)
    replace(tmp_path, authority().revocation_list())
    with running(tmp_path / "data", environment=given) as one:
        good, bad = [Service(one, shown, is_behind_proxy=is_behind_proxy) for shown in (GOOD, BAD)]
        assert (good.ask()[0], bad.ask()[0]) == (200, 200)
        assert findings(tmp_path, given)["revocation"]["status"] == "ok"
        replace(tmp_path, authority().revocation_list(REVOKED))
        until(lambda: bad.ask() == (401, "certificate is revoked: use another one"))
        assert good.ask()[0] == 200

        now = datetime.now(UTC)
        replace(tmp_path, authority().revocation_list(begins=now - timedelta(days=9), ends=now - timedelta(minutes=1)))
        until(lambda: good.ask()[0] == 401)
        assert "the revocation list of its issuer is old" in good.ask()[1]
        found = findings(tmp_path, given)["revocation"]
        assert (found["status"], "the list of CN=authority is not valid" in found["message"]) == ("critical", True)

        replace(tmp_path, "nonsense")
        until(lambda: "client_crl_file cannot be used" in good.ask()[1])
        found = findings(tmp_path, given)["revocation"]
        assert (found["status"], "no revocation list as PEM" in found["message"]) == ("critical", True)

        begins = now - timedelta(days=99)
        replace(tmp_path, authority().revocation_list(begins=begins, ends=now + timedelta(days=1)))
        until(lambda: good.ask()[0] == 200)
        assert bad.ask()[0] == 200, "this list does not name it"
        assert findings(tmp_path, given)["revocation"]["status"] == "warning", "it expires soon"
        assert httpx2.get(f"{one.url}/readyz", verify=client_context()).status_code == 200
        for each in (good, bad):
            each.close()
        _, log = one.stop()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    rejected = [each["cause"] for each in lines if each.get("event") == "client certificates are rejected"]
    assert rejected == ["the list of CN=authority is not valid at this time", "it has no revocation list as PEM"]
    assert "revocation lists of client certificates not reloaded" in log
    assert "client certificates are accepted again" in log


def test_m27_lists_that_cannot_be_read_are_rejected_at_start(tmp_path: Path) -> None:
    given = environment(tmp_path)
    said = refused(tmp_path / "data", environment=given)
    assert said.startswith(f"server.client_crl_file cannot be used from {tmp_path / 'revoked.pem'} (No such file")
    replace(tmp_path, authority("other").revocation_list())
    said = refused(tmp_path / "data", environment=given)
    assert "it has the list of CN=other, which is not in server.client_ca_file" in said
    lonely = {"REMUDA_SERVER__CLIENT_CRL_FILE": given["REMUDA_SERVER__CLIENT_CRL_FILE"]}
    assert "server.client_crl_file needs server.client_ca_file" in refused(tmp_path / "data", environment=lonely)
    assert not (tmp_path / "data").exists()
