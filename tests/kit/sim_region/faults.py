"""Fault rates and disturbances of the simulations of region and compute."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from remuda.app import registry
from remuda.kernel.errors import RemudaError
from remuda.providers.simulated.faults import FAULTS
from tests.kit.region.images import URI
from tests.kit.sim_region.images import Imagers
from tests.kit.sim_region.operators import help_out
from tests.kit.sim_region.system import BREAKING, RegionSystem
from tests.kit.simulation.machine import SimMachine

ATTEMPTS = 500
"""So many seeds are tried for a bug that was planted: the first that finds it is the last."""


REGISTRY = registry()
RATES = {
    "watch.dropped": 0.03,
    "watch.doubled": 0.05,
    "watch.gone": 0.01,
    "control.restart": 0.02,
    "leader.two": 0.3,
    "clock.jump": 0.05,
    "disk.slow": 0.005,
    "disk.write_error": 0.001,
    "power.cut": 0.025,
    "operator.stop": 0.05,
    "operator.fail": 0.03,
    "operator.migrate": 0.03,
    "operator.vanish": 0.03,
    **{f"cloud.{fault}": 0.03 for fault in FAULTS},
}


SIGNATURES = [address.partition("=")[2] for address in (URI, BREAKING)]
"""Parts of addresses from which images come."""


JUMPS = (timedelta(hours=1), timedelta(hours=-1), timedelta(seconds=40))


async def trouble(system: RegionSystem, machine: SimMachine) -> None:
    """Let things happen, each as the menu says."""
    while system.is_serving:
        await machine.clock.sleep(1)
        for act in ("stop", "fail", "migrate", "vanish"):
            if machine.faults.fires(f"operator.{act}"):
                meddle(system, act)
        if machine.faults.fires("control.restart"):
            await system.restart_control()
        if await machine.suffer(JUMPS):
            return


def meddle(system: RegionSystem, act: str) -> None:
    """Do something to a server behind our back, if there is one to which it can be done."""
    clouds = [cloud for cloud in system.clouds.clouds.values() if cloud.operator.servers()]
    if clouds:
        cloud = clouds[system.machine.randomness.randrange(len(clouds))]
        servers = cloud.operator.servers()
        server = servers[system.machine.randomness.randrange(len(servers))].handle.name
        system.history.disturbed.add(server)
        with suppress(RemudaError):
            getattr(cloud.operator, act)(server)


def check_secrets(secrets: Iterable[str], directory: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """I11: nothing secret is in any file, or in the log."""
    content = b"".join(path.read_bytes() for path in directory.iterdir()) + repr(list(lines)).encode()
    for secret in secrets:
        assert secret.encode() not in content, "a secret is in a file or in the log"


async def leave(system: RegionSystem) -> None:
    """Have done what only users can do, until nothing is left."""
    await help_out(system)
    await Imagers(system).give_all_up()
