"""Lookups that hang: the process ends without them."""

import subprocess
import sys

PROGRAM = """
import asyncio, socket, threading

from remuda.outbound.addresses import AddressPolicy, SystemResolver
from remuda.outbound.fetch import GuardedFetcher

began = threading.Event()

def hang(*_, **__):
    began.set()
    threading.Event().wait()

socket.getaddrinfo = hang

async def fetch():
    async with GuardedFetcher(resolve=SystemResolver(), reach=AddressPolicy()).open(
        "https://hangs.example/", {}, total_s=60.0
    ):
        raise AssertionError("there is no response")

async def run():
    fetching = asyncio.create_task(fetch())
    await asyncio.to_thread(began.wait)
    fetching.cancel()
    await asyncio.wait([fetching])
    print("stopped", flush=True)

asyncio.run(run())
"""


def test_m27_a_lookup_that_hangs_does_not_delay_the_end_of_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, "stopped\n"), ended.stderr
