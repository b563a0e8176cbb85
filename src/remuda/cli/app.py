"""The tree of commands.

A command is a function in a module of its own beside this one, registered by its import path: cyclopts imports the
module when the command is called, and not before. A list of commands therefore cannot read the functions' docstrings,
so each registration brings a line of help along. It would take the docstring's place in the help of the command itself,
so a command that is called goes without.
"""

from collections.abc import Collection

from cyclopts import App, Group, Parameter

from remuda.cli.command_table import ALONE, NOUNS
from remuda.version import describe

_HELP = (
    "Use, run and look after a Remuda, a compute cloud for many tenants.\n\n"
    "Every command explains itself with --help. "
    "A command that fails says in one sentence what happened and what to do, and ends with exit code 1; "
    "one that was not understood ends with 2."
)
_USE, _RUN = Group("Commands to use it", sort_key=1), Group("Commands to run it", sort_key=2)
_BELOW = Group("Commands")


def build_app(words: Collection[str] = ()) -> App:
    """Put the commands together for what was typed."""
    app = App(
        name="remuda",
        help=_HELP,
        help_format="rst",
        version=lambda: str(describe()),
        default_parameter=Parameter(negative_iterable=()),
        group_commands=_RUN,
    )
    _use(app, words)
    _add(app, words, "remuda.cli.commands.up:up", "Run everything in one process, on one file.")
    _add(app, words, "remuda.cli.doctor:doctor", "Look whether everything on this machine is as it should be.")
    _add(app, words, "remuda.cli.backup:backup", "Write a copy of the store to a file.")
    _add(app, words, "remuda.cli.commands.backup:restore", "Put a copy of the store in its place.")
    _add(app, words, "remuda.cli.crds:crds", "Print the custom resource definitions for a Kubernetes API server.")
    _add(app, words, "remuda.cli.commands.export:openapi", "Print the OpenAPI document of a service.")
    app.command(_config(words))
    app.command(_token(words))
    app.command(_sim(words))
    return app


def _use(app: App, words: Collection[str]) -> None:
    """Add what users do, apart from what whoever runs it does."""
    for function, line in ALONE:
        _add(app, words, f"remuda.cli.commands.{function}", line, group=_USE)
    for noun, (about, commands) in NOUNS.items():
        below = _below(noun, about, _USE)
        for function, line in commands:
            _add(below, words, f"remuda.cli.commands.{function}", line)
        app.command(below)


def _config(words: Collection[str]) -> App:
    app = _below("config", "Show the configuration, or check it.")
    _add(app, words, "remuda.cli.commands.config:show", "Print the configuration and where each value comes from.")
    _add(app, words, "remuda.cli.commands.config:check", "Say everything that is wrong with the configuration.")
    return app


def _token(words: Collection[str]) -> App:
    app = _below("token", "Tokens for operators on the machine itself.")
    _add(app, words, "remuda.cli.token:issue", "Print a short-lived token in a user's name.")
    return app


def _sim(words: Collection[str]) -> App:
    app = _below("sim", "See what simulated clouds have, and do to it what nobody asked for.")
    _add(app, words, "remuda.cli.commands.sim:list", "Print the servers that the simulated clouds have.")
    _add(app, words, "remuda.cli.commands.sim:stop", "Cut the power of a server.")
    _add(app, words, "remuda.cli.commands.sim:fail", "Break a server.")
    _add(app, words, "remuda.cli.commands.sim:migrate", "Have a server run on another host.")
    _add(app, words, "remuda.cli.commands.sim:vanish", "Have a server be gone, as if it had never been.")
    return app


def _below(name: str, about: str, group: Group = _RUN) -> App:
    return App(name=name, help=about, group=group, group_commands=_BELOW)


def _add(app: App, words: Collection[str], function: str, line: str, *, group: Group | None = None) -> None:
    """Add the command that is called what the function is."""
    name = function.rpartition(":")[2].strip("_").replace("_", "-")
    app.command(function, name=name, help=None if name in words else line, group=group)
