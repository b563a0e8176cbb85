"""Files that people name in options."""

from pathlib import Path

from remuda.kernel.errors import Invalid


def bytes_of(path: Path, option: str) -> bytes:
    """Return what is in a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid(option, f"{path} cannot be read ({cause})", remedy="name a file that is there") from None


def text_of(path: Path, option: str) -> str:
    """Return the text in a file."""
    try:
        return bytes_of(path, option).decode()
    except UnicodeDecodeError:
        raise Invalid(option, f"{path} is no text", remedy="name the right file") from None
