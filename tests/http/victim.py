"""A server to be abused, as a process of its own: `python -m tests.http.victim SECONDS CONNECTIONS`.

It says its port, and then serves the tiny application with that much patience until its stdin is closed.
"""

import asyncio
import sys

import uvloop

from remuda.http.patience import Patience
from tests.http.serving import serving


async def main(patience_s: float, connections: int) -> None:
    patience = Patience(
        head_s=patience_s,
        body_stall_s=patience_s,
        read_stall_s=patience_s,
        linger_s=min(1.0, patience_s),
        connections=connections,
    )
    async with serving(patience) as one:
        one.lines.lines.clear()
        print(one.address.port, flush=True)  # noqa: T201  how it is found
        await asyncio.to_thread(sys.stdin.read)
        print(dict(one.cuts), flush=True)  # noqa: T201  what it went through


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(float(sys.argv[1]), int(sys.argv[2])))
