"""An OpenStack by hand: `python -m tests.openstack.plane up --dir DIR` keeps one running until Ctrl-C or SIGTERM.

It prints OS_CLIENT_CONFIG_FILE=PATH once everything is ready. DIR keeps the data for the next time.
`python -m tests.openstack.plane install` only installs the programs.
"""

import argparse
import signal
import sys
from pathlib import Path

from tests.openstack.plane import programs
from tests.openstack.plane.plane import DEFAULT_PORT_OFFSET, Plane, PlaneError


def main() -> None:
    options = parse()
    for sign in (signal.SIGINT, signal.SIGTERM):  # a shell's background job begins with SIGINT ignored
        signal.signal(sign, signal.default_int_handler)
    try:
        if options.command == "install":
            programs.say(f"the programs are in {programs.ensure().home}")
        else:
            keep_up(Plane(options.dir, port_offset=options.port_offset))
    except KeyboardInterrupt:
        programs.say("stopped")
    except (PlaneError, programs.InstallError) as failure:
        sys.exit(f"openstack: {failure}")


def keep_up(plane: Plane) -> None:
    with plane:
        sys.stdout.write(f"OS_CLIENT_CONFIG_FILE={plane.clouds_file}\n")
        sys.stdout.flush()
        signal.pause()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.openstack.plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install", help="install the programs if the cache lacks them")
    up = commands.add_parser("up", help="run an OpenStack in the foreground")
    up.add_argument("--dir", type=Path, required=True, help="where it keeps everything")
    up.add_argument("--port-offset", type=int, default=DEFAULT_PORT_OFFSET, help="added to the usual ports")
    return parser.parse_args()


if __name__ == "__main__":
    main()
