"""What cannot be understood on the command line, told in our way: plainly, and with where to look."""

from cyclopts import CycloptsError
from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError


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
