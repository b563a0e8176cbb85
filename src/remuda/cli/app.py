"""The tree of commands.

A command is a function in a module of its own beside this one, registered by its import path: cyclopts imports the
module when the command is called, and not before. The list of commands therefore cannot read the function's docstring,
so each registration brings its line of help along.
"""

from cyclopts import App

from remuda.version import describe

__all__ = ["build_app"]

_HELP = (
    "Run and look after a Remuda, a compute cloud for many tenants.\n\n"
    "Every command explains itself with --help. "
    "A command that fails says in one sentence what happened and what to do, and ends with exit code 1."
)


def build_app() -> App:
    """Put the commands together."""
    app = App(name="remuda", help=_HELP, help_format="plaintext", version=lambda: str(describe()))
    _add_commands(app)
    return app


def _add_commands(app: App) -> None:
    app.command("remuda.cli.up:up", name="up", help="Run everything in one process, on one file.")
    app.command(
        "remuda.cli.crds:crds", name="crds", help="Print the custom resource definitions for a Kubernetes API server."
    )
    app.command("remuda.cli.openapi:openapi", name="openapi", help="Print the OpenAPI document of a service.")
    app.command(_config())
    app.command(_token())


def _config() -> App:
    app = App(name="config", help="Show the configuration, or check it.")
    app.command("remuda.cli.config:show", name="show", help="Print the configuration and where each value comes from.")
    app.command("remuda.cli.config:check", name="check", help="Say everything that is wrong with the configuration.")
    return app


def _token() -> App:
    app = App(name="token", help="Tokens for operators on the machine itself.")
    app.command("remuda.cli.token:issue", name="issue", help="Print a short-lived token in a user's name.")
    return app
