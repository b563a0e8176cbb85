"""The tree of commands.

A command is a function in a module of its own beside this one, registered by its import path: cyclopts imports the
module when the command is called, and not before. A list of commands therefore cannot read the functions' docstrings,
so each registration brings a line of help along. It would take the docstring's place in the help of the command itself,
so a command that is called goes without.

The commands of people who use a Remuda: each noun with what can be done to it, and a line about each.

What cannot be understood on the command line, told in our way: plainly, and with where to look.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

from remuda.version import describe

Commands = Sequence[tuple[str, str]]

ALONE: Final[Commands] = [
    ("login:login", "Log in, so that all other commands know where to ask, and as whom."),
    ("login:logout", "End a login, and forget it here."),
]
"""Those without a noun: where the function is, and its line."""

NOUNS: Final[Mapping[str, tuple[str, Commands]]] = {
    "context": (
        "See the logins that there are, and choose.",
        [
            ("context:list", "List the logins."),
            ("context:use", "Use another login from now on."),
            ("context:set", "Work in another organization or project from now on."),
        ],
    ),
    "instance": (
        "Make, change and use instances.",
        [
            ("instance:list_", "List the instances of the project."),
            ("instance:show", "Show an instance."),
            ("instance:create", "Make an instance."),
            ("instance:plan", "Show what a change would do and cost, and do nothing."),
            ("instance:update", "Change an instance."),
            ("instance:delete", "Give up an instance."),
            ("instance_actions:start", "Start an instance that is stopped."),
            ("instance_actions:stop", "Stop an instance."),
            ("instance_actions:reboot", "Reboot an instance."),
            ("instance_actions:console", "Print the address at which a browser sees its screen."),
            ("instance_actions:output", "Print what it wrote to its console."),
            ("instance_actions:ssh_key", "Print the private key that opens it."),
            ("instance_actions:snapshot", "Make an image of it."),
            ("instance_actions:timeline", "Show what happened to it, and what caused it."),
            ("instance_actions:explain", "Say why it is as it is."),
        ],
    ),
    "network": (
        "Make and change networks.",
        [
            ("network:list", "List the networks of the project."),
            ("network:show", "Show a network."),
            ("network:create", "Make a network."),
            ("network:update", "Change a network."),
            ("network:delete", "Give up a network."),
        ],
    ),
    "security-group": (
        "Say what may pass to and from instances.",
        [
            ("security_group:list", "List the security groups of the project."),
            ("security_group:show", "Show a security group."),
            ("security_group:create", "Make a security group."),
            ("security_group:update", "Change what it lets pass."),
            ("security_group:delete", "Give up a security group."),
        ],
    ),
    "ssh-ca": (
        "Say whose SSH certificates open instances.",
        [
            ("ssh_ca:list", "List the SSH certificate authorities of the project."),
            ("ssh_ca:show", "Show an SSH certificate authority."),
            ("ssh_ca:create", "Make one known."),
            ("ssh_ca:delete", "Forget one."),
        ],
    ),
    "image": (
        "See what instances can be made of, and add to it.",
        [
            ("image:list", "List the images that there are."),
            ("image:show", "Show an image."),
            ("image:import_", "Have an image fetched from elsewhere."),
            ("image:delete", "Give up an image."),
        ],
    ),
    "flavor": (
        "See how large instances can be.",
        [("flavor:list", "List the flavors that there are."), ("flavor:show", "Show a flavor.")],
    ),
    "region": (
        "See where networks and instances can be.",
        [("region:list", "List the regions that there are."), ("region:show", "Show a region.")],
    ),
    "quota": (
        "See how much there may be, and say it.",
        [
            ("quota:show", "Show how much there may be, and how much of that is used."),
            ("quota:set", "Change how much there may be."),
        ],
    ),
}
"""The others, by their noun: about the noun, and its commands."""


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
    _add(app, words, "remuda.cli.commands.doctor:doctor", "Look whether everything on this machine is as it should be.")
    _add(app, words, "remuda.cli.commands.backup:backup", "Write a copy of the store to a file.")
    _add(app, words, "remuda.cli.commands.backup:restore", "Put a copy of the store in its place.")
    _add(
        app,
        words,
        "remuda.cli.commands.export:crds",
        "Print the custom resource definitions for a Kubernetes API server.",
    )
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
    _add(app, words, "remuda.cli.commands.token:issue", "Print a short-lived token in a user's name.")
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


def explain(error: CycloptsError) -> str:
    """Return what is wrong with the words that were typed, and which command explains what there is."""
    command = " ".join(["remuda", *(error.command_chain or ())])
    return f"{_what(error)} {command} --help says what there is."


def _what(error: CycloptsError) -> str:
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return f"{error.argument.name} needs a value."
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"There is no use for {error.unused_tokens[0]!r} here."
    return " ".join(str(error).split())
