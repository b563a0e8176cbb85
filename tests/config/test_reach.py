"""What a process that others can reach needs, and what is rejected at start with the remedies."""

from pathlib import Path
from typing import Any

import pytest

from remuda.config.loader import Misconfigured
from remuda.config.reach import check_reach, own_url, public_url, tls_settings
from remuda.config.schema import Configuration, ServerConfig
from remuda.config.settings import check
from remuda.http.server.server import ListenAddress
from tests.kit.certificates import authority, server_files

REMEDIES = (
    "give it TLS (tls_certificate_file and tls_key_file, or --tls self-signed for a first try), "
    "set server.public_url to the https URL of a proxy in front, or accept that with --insecure."
)
HTTPS = "https://cloud.example.com"


def server(listen: str, **more: Any) -> ServerConfig:
    return ServerConfig(listen=ListenAddress.parse(listen), **more)


def rejection(configured: ServerConfig) -> str:
    with pytest.raises(Misconfigured) as caught:
        check(Configuration(server=configured))
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("listen", ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080", "cloud.example.com:80"])
def test_m27_an_address_that_others_reach_needs_tls(listen: str) -> None:
    said = f"server.listen = {listen} sends passwords and tokens over the network in clear text: {REMEDIES}"
    assert rejection(server(listen)) == said
    assert rejection(server(listen, public_url="http://cloud.example.com")) == said
    check_reach(server(listen, public_url=HTTPS))
    check_reach(server(listen, public_url=HTTPS, tls="self-signed"))
    check_reach(server(listen, public_url="http://cloud.example.com", insecure=True))


@pytest.mark.parametrize("listen", ["127.0.0.1:8080", "127.9.9.9:1", "[::1]:8080", "localhost:8080"])
def test_an_address_of_this_machine_alone_needs_nothing(listen: str) -> None:
    check_reach(server(listen))


@pytest.mark.parametrize(
    ("more", "example"),
    [({"insecure": True}, "http://NAME:8443"), ({"tls": "self-signed"}, "https://NAME:8443")],
)
def test_m27_no_page_leads_a_visitor_to_his_own_machine(more: dict[str, Any], example: str) -> None:
    for listen in ("0.0.0.0:8443", "[::]:8443"):
        assert rejection(server(listen, **more)) == (
            f"server.listen = {listen} is no address for clients: "
            f"set server.public_url (--public-url) to theirs, such as {example}."
        )
    check_reach(server("192.0.2.1:8443", **more))


@pytest.mark.parametrize(
    ("more", "url", "own"),
    [
        ({}, "http://127.0.0.1:9", "http://127.0.0.1:9"),
        ({"tls": "self-signed"}, "https://127.0.0.1:9", "https://127.0.0.1:9"),
        ({"public_url": HTTPS}, HTTPS, "http://127.0.0.1:9"),
    ],
)
def test_the_urls_of_a_process_say_how_it_is_spoken_to(more: dict[str, Any], url: str, own: str) -> None:
    configured = server("127.0.0.1:0", **more)
    found = ListenAddress("0.0.0.0", 9)
    assert (public_url(configured, found), own_url(configured, found)) == (url, own)


def test_the_certificate_that_is_made_is_for_the_host_that_clients_name(tmp_path: Path) -> None:
    for more, host in [({}, "192.0.2.1"), ({"public_url": "https://cloud.example.com:8443"}, "cloud.example.com")]:
        found = tls_settings(server("192.0.2.1:8443", data=tmp_path, tls="self-signed", **more))
        assert found is not None
        assert found.self_signed_for == (host,)
        assert found.files.certificate == tmp_path / "tls.crt"
    assert tls_settings(server("127.0.0.1:1")) is None


def test_settings_that_contradict_each_other_are_rejected(tmp_path: Path) -> None:
    files = server_files(tmp_path)
    certificate, key = files.certificate, files.key
    here = "127.0.0.1:1"
    both = "server.tls is set together with tls_certificate_file or tls_key_file: leave one of them out."
    assert rejection(server(here, tls="self-signed", tls_key_file=key)) == both
    assert rejection(server(here, tls_certificate_file=certificate)) == (
        "server.tls_key_file is missing: tls_certificate_file needs it."
    )
    assert rejection(server(here, tls_key_file=key)) == (
        "server.tls_certificate_file is missing: tls_key_file needs it."
    )
    given = {"tls_certificate_file": certificate, "tls_key_file": key}
    check_reach(server(here, **given, client_ca_file=files.client_authorities))
    assert rejection(server(here, **given, public_url="http://cloud.example.com")) == (
        "server.public_url is an http URL, but the server speaks TLS: write an https URL."
    )
    key.write_text(authority().own.key_pem)
    assert rejection(server(here, **given)) == (
        f"The certificate {certificate} cannot be used with the key {key} (key values mismatch): "
        "name PEM files of a certificate and of its own key, without a password."
    )
