"""Command tree, help and usage errors.

A command is a function in a module of `commands`, registered by its import path, so that cyclopts imports the module
only when the command is called. Lists of commands show the first line of the function's docstring, which is read from
the source without importing it.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

from remuda.version import describe

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel

USER_COMMANDS: Final[Sequence[str]] = ("login:login", "login:logout")
"""Commands of users without a noun, as MODULE:FUNCTION in `commands`."""
USER_NOUNS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "context": ("Manage login contexts.", ("context:list", "context:use", "context:set")),
    "instance": (
        "Manage instances.",
        (
            *(f"instance:{each}" for each in ("list_", "show", "create", "plan", "update", "rebuild", "delete")),
            *(f"instance_actions:{each}" for each in ("start", "stop", "reboot", "console", "output", "ssh_key")),
            *(f"instance_actions:{each}" for each in ("snapshot", "timeline", "explain")),
        ),
    ),
    "network": ("Manage networks.", [f"network:{each}" for each in ("list", "show", "create", "update", "delete")]),
    "security-group": (
        "Manage security groups, which filter traffic of instances.",
        [f"security_group:{each}" for each in ("list", "show", "create", "update", "delete")],
    ),
    "ssh-ca": (
        "Manage SSH certificate authorities, whose certificates instances accept.",
        [f"ssh_ca:{each}" for each in ("list", "show", "create", "delete")],
    ),
    "image": ("Manage images.", [f"image:{each}" for each in ("list", "show", "import_", "delete")]),
    "flavor": ("List flavors, the sizes of instances.", ("flavor:list", "flavor:show")),
    "region": (
        "List and manage regions.",
        (
            *("region:list", "region:show"),
            *(f"platform_region:{each}" for each in ("add", "check", "update", "disable", "enable", "remove")),
        ),
    ),
    "quota": ("Show and change quota.", ("quota:show", "quota:set", "quota:unset")),
    "audit": ("Export the audit log, and verify audit files.", ("audit:export", "audit:verify")),
}
"""Commands of users by their noun, with the help of the noun."""
OPERATOR_COMMANDS: Final[Sequence[str]] = (
    "up:up",
    "doctor:doctor",
    "backup:backup",
    "backup:restore",
    "export:crds",
    "export:openapi",
)
OPERATOR_NOUNS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "config": ("Show and check the configuration.", ("config:show", "config:check")),
    "keys": ("List and rotate the keys that seal secrets.", [f"keys:{each}" for each in ("list", "rotate", "remove")]),
    "user": (
        "Suspend and resume users of the whole system, and replace lost passwords and second factors.",
        (
            "user:suspend",
            "user:resume",
            "user:suspended",
            "user_password:password",
            "user:reset_second_factor",
        ),
    ),
    "token": ("Issue tokens on the machine itself.", ("token:issue",)),
    "sim": (
        "List and disrupt servers of simulated clouds.",
        [f"sim:{each}" for each in ("list", "stop", "fail", "migrate", "vanish")],
    ),
}
_HELP = """\
Use and operate Remuda, a multi-tenant compute cloud.

Example::

    remuda up --data ./data
    remuda login --credentials ./data/credentials.json
    remuda instance list

Run remuda COMMAND --help for the options of a command. Exit codes: 0 success, 1 failure, 2 usage error, 124 timeout of
--wait, 130 interrupted.
"""
_USERS, _OPERATORS = Group("User commands", sort_key=1), Group("Operator commands", sort_key=2)
_ARGUMENTS, _OPTIONS = Group("Arguments", sort_key=1), Group("Options", sort_key=2)
_COMMANDS = Group("Commands")
_GLOBAL = Group("Global options", sort_key=10)
_FOLDER = Path(__file__).parent / "commands"


def build_app(words: Sequence[str] = ()) -> App:
    """Return the command tree for a command line. It has no more commands and texts than that needs."""
    app = App(
        name="remuda",
        help=_HELP,
        help_format="plaintext",
        help_formatter=PlainHelp(),
        version=lambda: str(describe()),
        default_parameter=Parameter(negative_iterable=()),
        group_arguments=_ARGUMENTS,
        group_parameters=_OPTIONS,
        group_commands=_COMMANDS,
    )
    for option, text in (("--help", "Print this help and exit."), ("--version", "Print the version and exit.")):
        app[option].group, app[option].help = (_GLOBAL,), text
    for commands, subcommands, group in (
        (USER_COMMANDS, USER_NOUNS, _USERS),
        (OPERATOR_COMMANDS, OPERATOR_NOUNS, _OPERATORS),
    ):
        for function in commands:
            _add(app, words, function, group)
        for noun, (summary, functions) in subcommands.items():
            example = f"\n\nExample::\n\n    {_example(functions[0])}" if noun in words and _prints_help(words) else ""
            below = App(name=noun, help=f"{summary}{example}", group=group, group_commands=_COMMANDS)
            for function in functions if noun in words or not words else ():
                _add(below, words, function)
            app.command(below)
    return app


def _add(app: App, words: Sequence[str], function: str, group: Group | None = None) -> None:
    """Register a function under its name. The help of the command that is called is its whole docstring."""
    name = command_name(function)
    summary = None if name in words else _summary(function) if _prints_help(words) else ""
    app.command(f"remuda.cli.commands.{function}", name=name, help=summary, group=group)


def _prints_help(words: Sequence[str]) -> bool:
    return len(words) <= 1 or "--help" in words or "-h" in words


def command_name(function: str) -> str:
    return function.rpartition(":")[2].strip("_").replace("_", "-")


def _summary(function: str) -> str:
    return _docstring(function).partition("\n")[0]


def _example(function: str) -> str:
    return _docstring(function).partition("Example::")[2].strip().partition("\n")[0]


def _docstring(function: str) -> str:
    return ast.get_docstring(_definition(function)) or ""


def _optional_argument(usage: str) -> str:
    """Return the name of the optional argument of a command, by the usage that cyclopts writes."""
    _, *words = usage.partition(" [")[0].split()
    below = {**USER_NOUNS, **OPERATOR_NOUNS}
    functions = below[words[0]][1] if words[0] in below else [*USER_COMMANDS, *OPERATOR_COMMANDS]
    called = _definition(next(each for each in functions if command_name(each) == words[-1])).args
    return (called.vararg or called.posonlyargs[-1]).arg.upper()


def _definition(function: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    module, _, name = function.partition(":")
    return _definitions(module)[name]


@cache
def _definitions(module: str) -> Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions of a module, without importing it."""
    tree = ast.parse((_FOLDER / f"{module}.py").read_text())
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


class Terminal(Protocol):
    """The part of a console that a formatter uses; cyclopts passes one of rich."""

    @property
    def width(self) -> int: ...

    def print(self, text: str, /, *, markup: bool, highlight: bool, soft_wrap: bool) -> None: ...


class PlainHelp:
    """Help in plain text, as other command-line tools print it: no boxes, aligned and wrapped to the terminal."""

    def render_usage(self, console: Terminal, options: Any, usage: Any) -> None:  # noqa: ARG002  as called
        if usage:
            text = " ".join(_plain(usage).removeprefix("Usage:").split())
            text = re.sub(r"\[ARGS(\.*)\]", lambda found: f"[{_optional_argument(text)}{found[1]}]", text)
            _print(console, textwrap.wrap(f"Usage: {text}", console.width, subsequent_indent="  "))

    def render_description(self, console: Terminal, options: Any, description: Any) -> None:  # noqa: ARG002  as called
        """Print the paragraphs of a description. Indented ones are printed as they are."""
        for paragraph in _plain(description).strip().split("\n\n"):
            lines = textwrap.dedent(paragraph).splitlines()
            if paragraph.startswith(" "):
                _print(console, [f"  {line}" for line in lines])
            elif paragraph == "Example::":
                _print(console, ["", "Example:"])
            else:
                _print(console, ["", *textwrap.wrap(" ".join(lines), console.width)])

    def __call__(self, console: Terminal, options: Any, panel: "HelpPanel") -> None:  # noqa: ARG002  as called
        rows = [(_label(entry), " ".join(_about(entry))) for entry in panel.entries]
        if not rows:
            return
        width = min(max(len(label) for label, _ in rows), _LABEL_WIDTH)
        lines = ["", f"{panel.title}:"]
        for label, about in rows:
            first, *rest = textwrap.wrap(about, max(console.width - width - 4, _LABEL_WIDTH)) or [""]
            if len(label) > width:
                lines += [f"  {label}", f"{'':<{width + 4}}{first}"]
            else:
                lines.append(f"  {label:<{width}}  {first}".rstrip())
            lines += [f"{'':<{width + 4}}{line}" for line in rest]
        _print(console, lines)


_LABEL_WIDTH = 28


def _plain(text: Any) -> str:
    """Return the plain text of what cyclopts passes to a formatter."""
    inner = getattr(text, "primary_renderable", text)
    return str(getattr(inner, "plain", inner or ""))


def _print(console: Terminal, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _label(entry: "HelpEntry") -> str:
    if entry.positional_label:
        return entry.positional_label
    positive = ", ".join([*entry.positive_shorts, *entry.positive_names])
    return ", ".join([f"{positive} {entry.metavar}" if entry.metavar else positive, *entry.negative_names])


def _about(entry: "HelpEntry") -> Iterator[str]:
    yield _plain(entry.description).strip()
    if entry.choices:
        yield f"One of {', '.join(entry.choices)}."
    if entry.default is not None:
        yield f"Default: {entry.default}."
    if entry.required and not entry.positional_label:
        yield "Required."


def usage_message(error: CycloptsError) -> str:
    command = " ".join(["remuda", *(error.command_chain or ())])
    return f"{_problem(error)} See {command} --help."


def _problem(error: CycloptsError) -> str:
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return f"{error.argument.name} requires a value."
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"Unexpected argument {error.unused_tokens[0]!r}."
    return " ".join(str(error).split())
