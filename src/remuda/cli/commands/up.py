"""``remuda up``: everything in one process, on one file."""

import asyncio
from pathlib import Path

import uvloop

from remuda.app import StartMessages, registry, services, settings
from remuda.cli.commands.config import loaded
from remuda.cli.output import say
from remuda.config import settings as effect
from remuda.http.server.server import ListenAddress
from remuda.identity.bootstrap import FirstLogin
from remuda.process import run

_WELCOME = """\
This is the first start. Log in at {page} as {administrator} with {how}
Scripts find a token in {credentials}. The README has the first steps.
"""
_RANDOM = """this password, which is not shown again:

    {password}
"""
_CHOSEN = "the password of your configuration."
_LOST = """\
{credentials} is gone or damaged, and no start writes it again: get a token with remuda token issue, and rotate the \
service account scripts with it, whose answer has a new one for scripts.
"""


def up(*, data: Path | None = None, listen: str | None = None, config: Path | None = None) -> None:
    """Run everything in one process until it is told to stop, by Ctrl-C or SIGTERM.

    The first start makes an administrator, an organization, a project and a service account, and prints how to log in.
    The log goes to stderr, one JSON object a line. What else can be set, remuda config show lists.

    Parameters
    ----------
    data
        The directory that holds everything: the store, its keys and credentials.json. It is made if it is not there.
        By default $XDG_DATA_HOME/remuda, which is ~/.local/share/remuda unless set otherwise.
    listen
        HOST:PORT to answer on, by default 127.0.0.1:8080. Port 0 takes one that is free.
    config
        The TOML file with the configuration; by default remuda.toml in the data directory, if it is there.

    """
    configuration = loaded(config, data, listen).configuration
    effect.check(configuration)
    where = configuration.server.data.resolve()

    def announce(address: ListenAddress) -> None:
        say(f"Remuda is ready at http://{address} (data in {where}). Stop it with Ctrl-C.")

    begin = services(configuration, StartMessages(welcome=_welcome, credentials_lost=_lost))
    running = run(settings(configuration), announce=announce, services=begin, kinds=registry())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(running)


def _welcome(told: FirstLogin) -> None:
    how = _CHOSEN if told.password is None else _RANDOM.format(password=told.password.reveal())
    say(_WELCOME.format(page=told.page, administrator=told.administrator, how=how, credentials=told.credentials))


def _lost(credentials: Path) -> None:
    say(_LOST.format(credentials=credentials))
