"""Waiting, as a command does: nobody else's work stands still meanwhile."""

import time


def pause(seconds: float) -> None:
    """Do nothing for a while."""
    time.sleep(seconds)  # noqa: TID251  a command is a process by itself, on the machine's own time
