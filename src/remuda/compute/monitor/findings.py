"""What the monitor finds: remembered from look to look, shown to Prometheus, told in the timeline of whom it concerns.

::

    remuda_compute_findings{checker}          what is not as it should be, as of the last look
    remuda_compute_repairs_total{checker}     what was done about it

A thing that is odd in one look may be in the middle of something. What destroys is done after two looks in a row.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from remuda.compute.kinds import ComputeInstance, InstanceSpec
from remuda.compute.ports import ComputePorts
from remuda.quota.ports import ProjectRef
from remuda.reconcile.results import ReconcileContext
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.store.objects import Metadata

Checker = Literal[
    "instance-without-server",
    "server-without-instance",
    "allocation-without-owner",
    "allocation-differs",
    "damaged",
    "network-gone",
    "stuck",
]
"""What is looked for."""


class MonitorMetrics:
    """Counts, in a registry that it is given. Only the process that leads says anything."""

    def __init__(self, registry: CollectorRegistry) -> None:
        text = "What is not as it should be, as of the last look."
        self.findings = Gauge("remuda_compute_findings", text, ["checker"], registry=registry)
        text = "What was done about findings."
        self.repairs = Counter("remuda_compute_repairs", text, ["checker"], registry=registry)
        for checker in get_args(Checker):
            self.repairs.labels(checker)


@dataclass(slots=True)
class Look:
    """One look of a checker at everything."""

    before: dict[str, int]
    met: dict[str, int] = field(default_factory=dict)

    def meet(self, key: str) -> int:
        """Note that something is odd; return in how many looks in a row it was, this one included."""
        self.met[key] = self.before.get(key, 0) + 1
        return self.met[key]


class Findings:
    """What is known to be odd."""

    def __init__(self, ports: ComputePorts) -> None:
        self._ports, self._metrics = ports, MonitorMetrics(ports.metrics)
        self._known: dict[Checker, dict[str, int]] = {}

    def begin(self, checker: Checker) -> Look:
        """Begin a look. One that fails on the way, and so is not ended, has not been."""
        return Look(self._known.get(checker, {}))

    def end(self, checker: Checker, look: Look) -> None:
        """End a look: what was not met is all right."""
        self._known[checker] = look.met
        self._metrics.findings.labels(checker).set(len(look.met))

    async def tell(self, checker: Checker, subject: ComputeInstance, message: str, **facts: str) -> None:
        """Tell what was found, in the log and in a timeline."""
        structlog.get_logger().warning("finding", checker=checker, instance=subject.name, message=message, **facts)
        entry = self.run(subject).event(subject, "Finding", checker=checker, message=message, **facts)
        await self._ports.log.append([entry])

    async def tell_repaired(self, checker: Checker, subject: ComputeInstance, message: str, **facts: str) -> None:
        """Tell what was done about it."""
        self._metrics.repairs.labels(checker).inc()
        structlog.get_logger().info("repaired", checker=checker, instance=subject.name, message=message, **facts)
        entry = self.run(subject).event(subject, "Repaired", checker=checker, message=message, **facts)
        await self._ports.log.append([entry])

    def run(self, subject: ComputeInstance) -> ReconcileContext:
        """Return a pass of the monitor's, for what it does to an instance."""
        return ReconcileContext(
            controller="monitor",
            key=subject.name,
            cause="resync",
            registry=self._ports.store.registry,
            randomness=self._ports.randomness,
        )

    def fall_silent(self) -> None:
        """Show nothing that only the process knows that leads."""
        self._known.clear()
        self._metrics.findings.clear()


def stand_in(name: str, uid: str, place: ProjectRef) -> ComputeInstance:
    """Return what stands for an instance that is not there, where something is to be told of it."""
    labels = {ORGANIZATION: place.organization, PROJECT: place.project}
    return ComputeInstance(
        metadata=Metadata(name=name, uid=uid, labels=labels), spec=InstanceSpec(flavor_id="", image_id="")
    )
