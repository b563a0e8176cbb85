"""Command ``remuda up``: all services in one process."""

import asyncio
import ssl
import sys
from pathlib import Path
from typing import Literal

import uvloop

from remuda.app import StartMessages, registry, services, settings
from remuda.cli.commands.config import load_configuration
from remuda.cli.options import Flag
from remuda.cli.output import echo, is_terminal
from remuda.config.log import log_settings
from remuda.config.object_limits import object_limits
from remuda.config.reach import own_url
from remuda.config.settings import check
from remuda.datadir import DataDirectory
from remuda.http.server.log import LogFormat, LogLevel
from remuda.http.server.server import ListenAddress
from remuda.identity.bootstrap import FirstLogin
from remuda.kernel.encoding import fingerprint
from remuda.process import run

_FIRST_START = """\
This is the first start. Log in at {page} as {administrator} with {password}
A token for scripts is in {credentials}. The README shows the first steps.
"""
_GENERATED = """this password, which is not shown again and only lets you choose your own:

    {password}
"""
_CONFIGURED = "the password of your configuration, which only lets you choose another one."
_CREDENTIALS_LOST = """\
{credentials} is missing or damaged and is not written again: get a token with remuda token issue, and rotate the \
service account scripts with it. The response contains a new token for scripts.
"""


def up(
    *,
    data: Path | None = None,
    listen: str | None = None,
    config: Path | None = None,
    tls: Literal["self-signed"] | None = None,
    public_url: str | None = None,
    insecure: Flag = False,
    log: LogFormat | None = None,
    log_level: LogLevel | None = None,
    log_requests: Flag = False,
) -> None:
    """Run all services in one process until Ctrl-C or SIGTERM.

    The first start creates an administrator, an organization, a project and a service account, and prints how to log
    in. The log is written to stderr: as text without the requests if that is a terminal, otherwise as one JSON object a
    line. See remuda config show for all settings.

    Example::

        remuda up --data ./data --listen 127.0.0.1:8080
        remuda up --listen 10.0.0.7:8443 --tls self-signed

    :param data: Keep the store, its keys and credentials.json in this directory, which is created if it does not exist.
        The default is $XDG_DATA_HOME/remuda, usually ~/.local/share/remuda.
    :param listen: Listen on this HOST:PORT. The default is 127.0.0.1:8080; port 0 takes a free port.
    :param config: Read the configuration from this TOML file. The default is remuda.toml in the data directory, if it
        exists.
    :param tls: Speak TLS with a certificate that is made in the data directory, for a first try.
    :param public_url: Tell clients to use this URL. Needed to listen on all addresses.
    :param insecure: Let clients use the server over the network without TLS, in clear text.
    :param log: Write the log in this format. The default is text on a terminal, and JSON elsewhere.
    :param log_level: Log nothing below this level. The default is info.
    :param log_requests: Log each request, as JSON does by default.
    """
    flags = {
        "tls": tls,
        "public_url": public_url,
        "insecure": _true_if(insecure),
        "log.format": log,
        "log.level": log_level,
        "log.requests": _true_if(log_requests),
    }
    configuration = load_configuration(config, data, listen, **flags).configuration
    check(configuration)
    server = configuration.server

    def announce(address: ListenAddress) -> None:
        if server.tls:
            _announce_certificate(DataDirectory(server.data).tls_certificate)
        url = server.public_url if address.is_wildcard else own_url(server, address)
        echo(f"Remuda is ready at {url} (data in {server.data.resolve()}). Stop it with Ctrl-C.")
        first_start.show()

    first_start = _FirstStart(waits=is_terminal(sys.stdout))
    begin = services(configuration, StartMessages(first_login=first_start.take, credentials_lost=_credentials_lost))
    kinds = registry(object_limits(configuration.server))
    log_form = log_settings(configuration.log, is_terminal=is_terminal(sys.stderr))
    running = run(settings(configuration, log_form), announce=announce, services=begin, kinds=kinds)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(running)
    finally:
        first_start.show()


class _FirstStart:
    """Message of the first start.

    On a terminal it waits until the process is ready, so that it comes last, or until the process stops before that.
    A program reads the line about readiness last.
    """

    def __init__(self, *, waits: bool) -> None:
        self._waits = waits
        self._message = ""

    def take(self, first: FirstLogin) -> None:
        password = _CONFIGURED if first.password is None else _GENERATED.format(password=first.password.reveal())
        self._message = _FIRST_START.format(
            page=first.page, administrator=first.administrator, password=password, credentials=first.credentials
        )
        if not self._waits:
            self.show()

    def show(self) -> None:
        if self._message:
            message, self._message = self._message, ""
            echo(message)


def _true_if(flag: bool) -> str | None:  # noqa: FBT001  a flag of the command
    return "true" if flag else None


def _announce_certificate(certificate: Path) -> None:
    shown = fingerprint(ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii")))
    echo(f"The certificate is self-signed. remuda login shows its SHA-256 fingerprint: {shown}")


def _credentials_lost(credentials: Path) -> None:
    echo(_CREDENTIALS_LOST.format(credentials=credentials))
