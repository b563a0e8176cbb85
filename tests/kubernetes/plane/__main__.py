"""A plane by hand: `python -m tests.kubernetes.plane up --dir DIR` keeps one running until Ctrl-C or SIGTERM.

It prints KUBECONFIG=PATH once the API answers. DIR keeps the data for the next time.
`python -m tests.kubernetes.plane build` only fills the cache with the programs.
"""

import argparse
from pathlib import Path

from tests.kit.planes import keep_up, run_command, say
from tests.kubernetes.plane import programs
from tests.kubernetes.plane.plane import Plane, PlaneError


def main() -> None:
    options = parse()

    def command() -> None:
        if options.command == "build":
            say(programs.NAME, f"the programs are in {programs.ensure()}")
        else:
            plane = Plane(options.dir, fsync=options.fsync, apiserver_args=options.apiserver_arg)
            keep_up(plane, lambda: f"KUBECONFIG={plane.kubeconfig}")

    run_command(programs.NAME, command, (PlaneError, programs.BuildError))


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
