"""The proxies of docs/examples as processes: the files as they stand there, with other addresses and paths."""

import os
import pwd
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.certificates import Issued
from tools.debian_programs import environment, find

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
UNPACKED = ROOT / ".proxies"
START_S = 60.0
_NGINX = """\
daemon off;
pid {directory}/nginx.pid;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/remuda.conf;
}}
"""
"""What Debian's own nginx.conf has around the files in conf.d."""


@dataclass(frozen=True)
class Files:
    """Files that the examples name."""

    directory: Path
    port: int
    backend: int

    def text(self, example: str, addresses: Mapping[str, str]) -> str:
        """Return an example with the addresses and paths of this test, each of which it must have."""
        text = (EXAMPLES / example).read_text()
        paths = {"/etc/remuda": str(self.directory), "127.0.0.1:8080": f"127.0.0.1:{self.backend}"}
        for old, new in {**paths, **addresses}.items():
            assert old in text, f"{example} has no {old}"
            text = text.replace(old, new)
        return text


def _nginx(program: Path, files: Files) -> Sequence[str]:
    directory = files.directory
    text = files.text("nginx.conf", {"listen 443": f"listen 127.0.0.1:{files.port}", "cloud.example.com": "localhost"})
    (directory / "remuda.conf").write_text(text)
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    (directory / "nginx.conf").write_text(_NGINX.format(directory=directory, user=user))
    return [str(program), "-e", "stderr", "-p", str(directory), "-c", str(directory / "nginx.conf")]


def _caddy(program: Path, files: Files) -> Sequence[str]:
    site = f"https://localhost:{files.port} {{\n\tbind 127.0.0.1\n"
    (files.directory / "Caddyfile").write_text(files.text("Caddyfile", {"cloud.example.com {\n": site}))
    return [str(program), "run", "--adapter", "caddyfile", "--config", str(files.directory / "Caddyfile")]


def _haproxy(program: Path, files: Files) -> Sequence[str]:
    text = files.text("haproxy.cfg", {"bind :443": f"bind 127.0.0.1:{files.port}"})
    (files.directory / "haproxy.cfg").write_text(text)
    return [str(program), "-db", "-f", str(files.directory / "haproxy.cfg")]


PROXIES: Mapping[str, Callable[[Path, Files], Sequence[str]]] = {"nginx": _nginx, "caddy": _caddy, "haproxy": _haproxy}
"""The command of each proxy, by its name; it writes the files that the program reads."""


def _write_certificates(directory: Path, server: Issued, clients_pem: str) -> None:
    (directory / "client-ca.pem").write_text(clients_pem)
    place = directory / "proxy"
    place.mkdir()
    (place / "server.pem").write_text(server.pem)
    (place / "server.key").write_text(server.key_pem)
    (place / "server-with-key.pem").write_text(server.pem + server.key_pem)


@contextmanager
def proxy(name: str, directory: Path, *, backend: int, server: Issued, clients_pem: str) -> Iterator[int]:
    """Run a proxy in front of a port of this machine; yield its own port."""
    program = find(name, UNPACKED)
    assert program is not None, f"there is no {name}: see `make test-proxies`"
    directory.mkdir()
    _write_certificates(directory, server, clients_pem)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = PROXIES[name](program, Files(directory, port, backend))
    homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(directory))
    log = directory / "log"
    with log.open("wb") as lines:
        variables = {**environment(UNPACKED), **homes}
        process = subprocess.Popen(command, stdout=lines, stderr=lines, cwd=directory, env=variables)
    with process:
        try:
            _wait(process, port, log)
            yield port
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(log.read_text(errors="replace"))
