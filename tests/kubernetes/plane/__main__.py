"""A plane by hand: `python -m tests.kubernetes.plane up --dir DIR` keeps one running until Ctrl-C or SIGTERM.

It prints KUBECONFIG=PATH once the API answers. DIR keeps the data for the next time.
`python -m tests.kubernetes.plane build` only fills the cache with the programs.
"""

import argparse
import signal
import sys
from pathlib import Path

from tests.kubernetes.plane import programs
from tests.kubernetes.plane.plane import Plane, PlaneError


def main() -> None:
    options = parse()
    for sign in (signal.SIGINT, signal.SIGTERM):  # a shell's background job begins with SIGINT ignored
        signal.signal(sign, signal.default_int_handler)
    try:
        if options.command == "build":
            programs.say(f"the programs are in {programs.ensure()}")
        else:
            keep_up(Plane(options.dir, fsync=options.fsync, apiserver_args=options.apiserver_arg))
    except KeyboardInterrupt:
        programs.say("stopped")
    except (PlaneError, programs.BuildError) as failure:
        sys.exit(f"kubernetes: {failure}")


def keep_up(plane: Plane) -> None:
    with plane:
        sys.stdout.write(f"KUBECONFIG={plane.kubeconfig}\n")
        sys.stdout.flush()
        signal.pause()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs if the cache lacks them")
    up = commands.add_parser("up", help="run a plane in the foreground")
    up.add_argument("--dir", type=Path, required=True, help="where it keeps everything")
    up.add_argument("--no-fsync", dest="fsync", action="store_false", help="faster; a power cut may lose data")
    up.add_argument("--apiserver-arg", action="append", default=[], metavar="ARG", help="passed on to kube-apiserver")
    return parser.parse_args()


if __name__ == "__main__":
    main()
