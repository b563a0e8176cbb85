"""Findings of the monitor: inconsistencies, counted in metrics and recorded in the timeline of the instance.

::

    remuda_compute_findings{checker}          inconsistencies found in the last round
    remuda_compute_repairs_total{checker}     repairs

An inconsistency in one round may be transient, so deletions need two rounds in a row.
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


class MonitorMetrics:
    """Metrics of the monitor. Only the leader sets them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        text = "Inconsistencies found in the last round."
        self.findings = Gauge("remuda_compute_findings", text, ["checker"], registry=registry)
        text = "Inconsistencies that were repaired."
        self.repairs = Counter("remuda_compute_repairs", text, ["checker"], registry=registry)
        for checker in get_args(Checker):
            self.repairs.labels(checker)


@dataclass(slots=True)
class CheckRound:
    """One round of a checker over all its objects."""

    previous: dict[str, int]
    found: dict[str, int] = field(default_factory=dict)

    def record(self, key: str) -> int:
        """Record a finding; return the number of rounds in a row that had it, including this one."""
        self.found[key] = self.previous.get(key, 0) + 1
        return self.found[key]


class Findings:
    """The present findings of all checkers."""

    def __init__(self, ports: ComputePorts) -> None:
        self._ports, self._metrics = ports, MonitorMetrics(ports.metrics)
        self._known: dict[Checker, dict[str, int]] = {}

    def begin(self, checker: Checker) -> CheckRound:
        """Begin a round. One that fails, and so is not ended, has no effect."""
        return CheckRound(self._known.get(checker, {}))

    def end(self, checker: Checker, checked: CheckRound) -> None:
        """End a round: what it did not find is resolved."""
        self._known[checker] = checked.found
        self._metrics.findings.labels(checker).set(len(checked.found))

    async def report(self, checker: Checker, subject: ComputeInstance, message: str, **facts: str) -> None:
        """Record a finding in the log and in the timeline."""
        structlog.get_logger().warning("finding", checker=checker, instance=subject.name, message=message, **facts)
        entry = self.context(subject).event(subject, "Finding", checker=checker, message=message, **facts)
        await self._ports.log.append([entry])

    async def report_repair(self, checker: Checker, subject: ComputeInstance, message: str, **facts: str) -> None:
        """Record the repair of a finding in the log, the metrics and the timeline."""
        self._metrics.repairs.labels(checker).inc()
        structlog.get_logger().info("repaired", checker=checker, instance=subject.name, message=message, **facts)
        entry = self.context(subject).event(subject, "Repaired", checker=checker, message=message, **facts)
        await self._ports.log.append([entry])

    def context(self, subject: ComputeInstance) -> ReconcileContext:
        return ReconcileContext(
            controller="monitor",
            key=subject.name,
            cause="resync",
            registry=self._ports.store.registry,
            randomness=self._ports.randomness,
        )

    def clear(self) -> None:
        """Forget all findings when this process no longer leads."""
        self._known.clear()
        self._metrics.findings.clear()


def placeholder_instance(name: str, uid: str, project: ProjectRef) -> ComputeInstance:
    """Return an object for events about an instance that does not exist."""
    labels = {ORGANIZATION: project.organization, PROJECT: project.project}
    return ComputeInstance(
        metadata=Metadata(name=name, uid=uid, labels=labels), spec=InstanceSpec(flavor_id="", image_id="")
    )
