"""TLS of a real process: what a first try shows, what a login pins, services with certificates, files that change."""

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from remuda.datadir import DataDirectory
from remuda.kernel.encoding import fingerprint
from tests.kit.certificates import Issued, authority, client_context, self_signed, server_files
from tests.kit.identity.service_credentials import CI, principal, system_accounts
from tests.kit.processes.program import Running, refused, remuda, running
from tests.kit.processes.terminal import Terminal

SELF_SIGNED = ("--tls", "self-signed")
FINGERPRINT = re.compile(
    r"^The certificate is self-signed\. .* fingerprint: ((?:[0-9A-F]{2}:){31}[0-9A-F]{2})$", re.MULTILINE
)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("tried") / "data", *SELF_SIGNED) as one:
        yield one


def printed(one: Running) -> str:
    """Return the fingerprint that a process prints."""
    (found,) = FINGERPRINT.findall(one.said)
    return str(found)


def moved(one: Running, folder: Path) -> str:
    """Return credentials that are no longer beside the data, as on another machine."""
    copy = folder / "credentials.json"
    copy.write_bytes((one.data / "credentials.json").read_bytes())
    return str(copy)


def test_a_first_try_speaks_tls_with_a_certificate_of_its_own(tried: Running) -> None:
    assert tried.url.startswith("https://127.0.0.1:")
    context = ssl.create_default_context(cafile=str(tried.data / "tls.crt"))
    with httpx2.Client(verify=context, base_url=tried.url) as browser:
        page = browser.get("/readyz")
        assert page.headers["strict-transport-security"] == "max-age=31536000"
        login = browser.get("/identity/oauth2/v2/account", follow_redirects=True)
    cookies = login.headers.get_list("set-cookie")
    assert cookies
    assert all(each.startswith("__Host-") and "; Secure" in each for each in cookies)
    assert tried.credentials["endpoints"]["identity"] == f"{tried.url}/identity"
    shown = ssl.PEM_cert_to_DER_cert((tried.data / "tls.crt").read_text())
    assert printed(tried) == fingerprint(shown)


def test_commands_on_the_machine_itself_find_the_process(tried: Running) -> None:
    issued = remuda("token", "issue", "--subject", "admin@remuda.local", "--data", str(tried.data))
    assert (issued.returncode, issued.stdout[:3]) == (0, "eyJ"), issued.stderr
    found = remuda("doctor", "--data", str(tried.data))
    assert (found.returncode, f"A process is running at {tried.url} and is ready." in found.stdout) == (0, True)
    assert "The certificate of the server is valid until " in found.stdout


def test_m27_a_login_beside_the_data_pins_the_certificate_without_a_question(
    tried: Running, terminal: Terminal
) -> None:
    terminal("login", "--credentials", str(tried.data / "credentials.json"))
    _, context = terminal.contexts.find(None)
    assert context.certificate == (tried.data / "tls.crt").read_text()
    assert terminal("region", "list", "-o", "name") == "sim-north\nsim-south\n"


def test_m27_a_login_from_elsewhere_pins_what_the_user_has_compared(
    tried: Running, terminal: Terminal, tmp_path: Path
) -> None:
    shown, credentials = printed(tried), moved(tried, tmp_path)
    words = ("login", "--credentials", credentials)
    assert terminal.refused(*words) == (
        f"{tried.url} has a certificate that this machine does not trust (self-signed certificate). "
        f"Compare its SHA-256 fingerprint with the one that remuda up prints there: {shown}. "
        "Then add --fingerprint to trust it."
    )
    wrong = "00" + shown[2:] if shown[:2] != "00" else "11" + shown[2:]
    assert terminal.refused(*words, "--fingerprint", wrong) == (
        f"--fingerprint is not that of {tried.url}, which is {shown}: do not log in before you know why."
    )
    assert terminal.contexts.contexts == {}
    terminal(*words, "--fingerprint", shown.lower().replace(":", ""))
    assert terminal("region", "list", "-o", "name") == "sim-north\nsim-south\n"


@pytest.mark.parametrize(("answer", "is_pinned"), [("y\n", True), ("n\n", False), ("", False)])
def test_at_a_terminal_the_user_is_asked(
    tried: Running,
    terminal: Terminal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    *,
    is_pinned: bool,
) -> None:
    class Typed:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    monkeypatch.setattr("sys.stdin", Typed())
    code, _, error = terminal.typed("login", "--credentials", moved(tried, tmp_path))
    assert f"{printed(tried)}. Continue? [y/N]" in error
    assert (code, bool(terminal.contexts.contexts)) == ((0, True) if is_pinned else (1, False))


def test_m27_another_certificate_than_the_pinned_one_is_an_error_that_says_what_to_do(
    terminal: Terminal, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with running(data, *SELF_SIGNED) as one:
        terminal("login", "--credentials", str(data / "credentials.json"))
        first, address = printed(one), one.url.removeprefix("https://")
        one.stop()
    with running(data, *SELF_SIGNED, listen=address) as again:
        assert printed(again) == first, "it is kept"
        assert terminal("region", "list", "-o", "name")
        again.stop()
    (data / "tls.crt").unlink()
    with running(data, *SELF_SIGNED, listen=address) as changed:
        assert printed(changed) != first
        for words in (("region", "list"), ("instance", "list", "--watch")):
            assert terminal.refused(*words) == (
                f"The certificate of {changed.url} is not the one that this login trusts: if the server has a new one, "
                "log in again with remuda login; otherwise another server has taken its place."
            )
        terminal("login", "--credentials", str(data / "credentials.json"))
        assert terminal("region", "list", "-o", "name")


def test_a_fingerprint_without_tls_is_of_no_use(terminal: Terminal) -> None:
    said = terminal.refused("login", "http://127.0.0.1:1", "--fingerprint", "00")
    assert said == "--fingerprint is of no use without TLS: give an https URL, or leave it out."


def environment(folder: Path, **more: str) -> Mapping[str, str]:
    """Return the variables of a process with TLS, and with services that have certificates or a key."""
    files = server_files(folder)
    (folder / "ci.pem").write_text(system_accounts()[CI].public_key)
    accounts = f'{{ unikorn-compute = {{ role = "compute-service" }}, {CI} = {{ role = "platform-reader", '
    return {
        "REMUDA_SERVER__TLS_CERTIFICATE_FILE": str(files.certificate),
        "REMUDA_SERVER__TLS_KEY_FILE": str(files.key),
        "REMUDA_SERVER__CLIENT_CA_FILE": str(files.client_authorities),
        "REMUDA_IDENTITY__SYSTEM_ACCOUNTS": f'{accounts}public_key_file = "{folder / "ci.pem"}" }} }}',
        **more,
    }


def ask(one: Running, shown: Issued | None = None, /, **headers: str) -> tuple[int, Any]:
    """Ask a process what one may do, with this certificate."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with httpx2.Client(verify=client_context(shown=shown)) as client:
        reply = client.get(f"{one.url}/identity/api/v1/acl", headers=sent)
    return reply.status_code, reply.json()


def test_m27_a_service_authenticates_by_tls_and_no_header_takes_its_place(tmp_path: Path) -> None:
    claim = {"x_principal": principal({})}
    compute = authority().issue("unikorn-compute")
    with running(tmp_path / "data", environment=environment(tmp_path)) as one:
        status, acl = ask(one, compute, **claim)
        assert status == 200
        assert "identity:allocations" in {each["name"] for each in acl["global"]}
        assert ask(one, compute)[0] == 400, "it must name for whom it acts"
        for shown, sentence in [
            (authority().issue("unikorn-region"), "certificate is not known"),
            (authority().issue(CI), "certificate is not accepted: this account has a key"),
        ]:
            status, told = ask(one, shown, **claim)
            assert (status, told["error_description"].startswith(sentence)) == (401, True), told
        headers = {"ssl_client_verify": "SUCCESS", "ssl_client_cert": compute.pem.replace("\n", "%0A")}
        assert ask(one, **claim, **headers)[1]["error_description"] == "authorization header missing"
        assert ask(one, authority().issue("unikorn-region"), **claim, **headers)[0] == 401
        token = f"Bearer {one.credentials['token']}"
        plain = ask(one, authorization=token)
        assert plain[0] == 200
        assert ask(one, compute, authorization=token) == plain, "a certificate alone changes nothing of a token"
        with pytest.raises(httpx2.TransportError):
            ask(one, self_signed("unikorn-compute"), **claim)


def test_m27_the_certificate_of_a_proxys_own_connection_does_not_count_for_its_clients(tmp_path: Path) -> None:
    for setting in ("FORWARDING_PROXIES", "CERTIFICATE_PROXIES"):
        folder = tmp_path / setting
        folder.mkdir()
        given = environment(folder, **{f"REMUDA_SERVER__{setting}": '["127.0.0.1"]'})
        with running(folder / "data", environment=given) as one:
            status, told = ask(one, authority().issue("unikorn-compute"), x_principal=principal({}))
            assert (status, told["error_description"]) == (401, "authorization header missing")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.1)


def test_m27_a_renewed_certificate_and_other_authorities_count_without_a_restart(tmp_path: Path) -> None:
    proxies = {"REMUDA_SERVER__CERTIFICATE_PROXIES": '["127.0.0.1"]'}
    other = authority("other")
    compute = authority().issue("unikorn-compute")
    headers = {
        "x_principal": principal({}),
        "ssl_client_verify": "SUCCESS",
        "ssl_client_cert": compute.pem.replace("\n", "%0A"),
    }
    with running(tmp_path / "data", environment=environment(tmp_path, **proxies)) as one:
        assert ask(one, **headers)[0] == 200
        (tmp_path / "clients.pem").write_text(other.pem)
        until(lambda: ask(one, **headers)[0] == 401)
        server_files(tmp_path, issuer=other, key="renewed")
        host, port = one.url.removeprefix("https://").split(":")
        renewed = ssl.PEM_cert_to_DER_cert((tmp_path / "server.pem").read_text())
        until(lambda: ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port)))) == renewed)
        (tmp_path / "server.pem").write_text("broken")
        for words in (("doctor",), ("token", "issue", "--subject", "admin@remuda.local")):
            found = remuda(*words, "--data", str(one.data))
            assert found.returncode == 0, "commands on the machine trust what the process shows, not the file"
        _, log = one.stop()
        assert "certificate of the server reloaded" in log


def test_m27_what_others_could_read_or_not_reach_is_refused_at_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    said = refused(data, "0.0.0.0:0")
    assert said.startswith("server.listen = 0.0.0.0:0 sends passwords and tokens over the network in clear text: ")
    for remedy in ("--tls self-signed", "https URL of a proxy", "--insecure"):
        assert remedy in said
    for words in (SELF_SIGNED, ("--insecure",)):
        assert "set server.public_url (--public-url)" in refused(data, "0.0.0.0:0", *words)
    assert "needs server.client_ca_file" in refused(
        data, environment={"REMUDA_SERVER__CERTIFICATE_PROXIES": '["127.0.0.1"]'}
    )
    assert not data.exists()
    found = remuda("doctor", "--data", str(data), "--listen", "0.0.0.0:0")
    assert (found.returncode, "reach" in found.stdout, "--insecure" in found.stdout) == (1, True, True)


def test_m27_a_process_that_was_told_to_speak_in_clear_text_does_and_doctor_says_so(tmp_path: Path) -> None:
    words = ("--insecure", "--public-url", "http://cloud.example.com:8080")
    with running(tmp_path / "data", *words, listen="0.0.0.0:0") as one:
        assert one.url == "http://cloud.example.com:8080", "clients do not come by 0.0.0.0"
        here = DataDirectory(one.data).running_at()
        assert here is not None
        issuer = httpx2.get(f"{here}/identity/.well-known/openid-configuration").json()["issuer"]
        assert issuer == "http://cloud.example.com:8080/identity", "no page leads visitors to their own machine"
        found = remuda("doctor", "--data", str(one.data))
        assert "Clients on other machines send passwords and tokens in clear text." in found.stdout
