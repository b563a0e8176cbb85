"""The program started on a data directory, and what it counts."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.processes.forked import start
from tests.kit.processes.program import Running, _until_ready

_CODE = """
import json, os, sys
from prometheus_client import CollectorRegistry
from remuda.cli import main

collectors, register = [], CollectorRegistry.register

def kept(registry, collector):
    collectors.append(collector)
    register(registry, collector)

CollectorRegistry.register = kept
code = main()
told = []
for each in collectors:
    if hasattr(each, "_labelnames"):
        series = [list(values) for values in getattr(each, "_metrics", {})]
        told.append([each._name, each._type, list(each._labelnames), series])
    else:
        for family in each.collect():
            labels = {name: None for sample in family.samples for name in sample.labels if name != "le"}
            told.append([family.name, family.type, list(labels), []])
with open(os.environ["FORMATS_METRICS"], "w") as file:
    json.dump(told, file)
sys.exit(code)
"""
_FEW = frozenset({"lease", "phase", "result", "checker", "obstacle", "found", "reason"})
"""Labels whose values are few and all there from the start, and mean something to programs."""
_CONTROLLER = "controller"
"""A label of many metrics, with the same values: these are told once. Sagas and steps are told with the sagas."""


@contextmanager
def started(data: Path) -> Iterator[Running]:
    """Start the program; when it has stopped, `metrics_of` knows what it counted."""
    words = ["up", "--data", str(data), "--listen", "127.0.0.1:0"]
    environment = {"FORMATS_METRICS": str(_metrics(data))}
    with start(_CODE, *words, environment=environment, stdout=subprocess.PIPE) as process:
        yield from _until_ready(process, data)


def metrics_of(data: Path) -> Any:
    """Return every metric that a process counted on this data directory, by name, and the names of controllers."""
    found: dict[str, Any] = {}
    controllers: set[str] = set()
    for name, kind, labels, series in json.loads(_metrics(data).read_text()):
        if name.startswith("remuda_"):
            values = {label: sorted({each[place] for each in series}) for place, label in enumerate(labels)}
            controllers.update(values.get(_CONTROLLER, ()))
            few = {label: values[label] for label in labels if label in _FEW and values[label]}
            found[name] = {"type": kind, "labels": labels, **few}
    return {"metrics": {name: found[name] for name in sorted(found)}, "controllers": sorted(controllers)}


def _metrics(data: Path) -> Path:
    return data.with_name(f"{data.name}-metrics.json")
