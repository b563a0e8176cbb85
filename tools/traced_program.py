"""Program under trace: the command line of a checkout, with a profile function that notes which functions run.

`tools.trace_files` starts it with the Python of that checkout and with nothing of this package on the path. Commands
come on standard input, `start` and `stop`; results go to the descriptor that is the first argument, one line each: the
functions that ran since the last `start`, as file and name. The directory of the source is the second argument; what
follows are the arguments of the program itself. It ends when standard input does.
"""

import inspect
import json
import os
import signal
import sys
import threading
from types import FrameType
from typing import TextIO


class Recorder:
    """Functions that run while recording is on.

    Bodies of modules and classes run when something is imported late. They define functions and do nothing else, so
    they do not count.
    """

    def __init__(self, source: str) -> None:
        self._source = source.rstrip(os.sep) + os.sep
        self._is_on = False
        self._found: set[tuple[str, str, int]] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call: the profile function of every thread."""
        code = frame.f_code
        if self._is_on and event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            self._found.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    def start(self) -> None:
        """Forget everything and begin."""
        self._found = set()
        self._is_on = True

    def stop(self) -> list[tuple[str, str]]:
        """End, and return the functions of the source that ran."""
        self._is_on = False
        return sorted(
            (file.removeprefix(self._source), f"{name}:{line}")
            for file, name, line in self._found
            if file.startswith(self._source)
        )


def serve(recorder: Recorder, commands: TextIO, results: TextIO) -> None:
    """Carry out commands until there are no more; then end the process as an operator would."""
    for command in commands:
        found = recorder.stop()
        if command.strip() == "start":
            recorder.start()
        print(json.dumps(found), file=results, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run the program."""
    descriptor, source, *arguments = sys.argv[1:]
    recorder = Recorder(source)
    results = os.fdopen(int(descriptor), "w")
    threading.Thread(target=serve, args=(recorder, sys.stdin, results), daemon=True).start()
    threading.setprofile(recorder.note)  # threads that are started from now on
    sys.setprofile(recorder.note)
    from remuda.cli import main as program  # noqa: PLC0415  what it imports is part of what is traced

    if not inspect.getfile(program).startswith(source):
        sys.exit(f"{inspect.getfile(program)} was imported, which is not in {source}")
    return program(arguments)


if __name__ == "__main__":
    sys.exit(main())
