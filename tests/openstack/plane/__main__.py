"""An OpenStack by hand: `python -m tests.openstack.plane up --dir DIR` keeps one running until Ctrl-C or SIGTERM.

It prints OS_CLIENT_CONFIG_FILE=PATH once everything is ready. DIR keeps the data for the next time.
`python -m tests.openstack.plane install` only installs the programs.
"""

import argparse
from pathlib import Path

from tests.kit.planes import keep_up, run_command, say
from tests.openstack.plane import programs
from tests.openstack.plane.plane import Plane, PlaneError


def main() -> None:
    options = parse()

    def command() -> None:
        if options.command == "install":
            say(programs.NAME, f"the programs are in {programs.ensure().home}")
        else:
            plane = Plane(options.dir)
            keep_up(plane, lambda: f"OS_CLIENT_CONFIG_FILE={plane.clouds_file}")

    run_command(programs.NAME, command, (PlaneError, programs.InstallError))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.openstack.plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install", help="install the programs if the cache lacks them")
    up = commands.add_parser("up", help="run an OpenStack in the foreground")
    up.add_argument("--dir", type=Path, required=True, help="where it keeps everything")
    return parser.parse_args()


if __name__ == "__main__":
    main()
