"""Files of the source that run for one request, counted in a running program of any checkout.

`python -m tools.trace_files --checkout PATH [--checkout PATH]` starts the program of each checkout with a fresh data
directory, creates an instance over HTTP and waits until it is provisioned, reads it, deletes a network and waits until
that is gone. For each of the three it counts the files of `src/remuda` in which a function ran meanwhile. The first
checkout is what the others are compared with. Nothing of the program is imported here.

No other request is sent while one is recorded: a trial run in another process, which polls, measures how long to
record. Background tasks run meanwhile as well, so the same length of time is recorded before, without a request, and
every request has three numbers: `all` files that ran; `idle`, those of them that also ran in the idle time; and `own`,
files with a function that did not run in the idle time. The exact number is between `own` and `all`, because a request
may use a function that a background task uses too.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

TRACED = Path(__file__).with_name("traced_program.py")
START_S = 60.0
"""The program is ready after so long, traced and on a busy machine, or it never is."""
FINISH_S = 120.0
SETTLE_S = 3.0
"""What a start or a request sets off in the background is over after so long."""
SHORT_S = 0.5
"""What a plain read sets off is over after so long."""

Function = tuple[str, str]
Functions = frozenset[Function]
Response = tuple[int, Any]


@dataclass(frozen=True)
class Trace:
    """Functions that ran for a request, and those that ran in the same time without it."""

    ran: Functions
    idle: Functions

    @property
    def files(self) -> set[str]:
        """Return all files in which a function ran."""
        return {file for file, _ in self.ran}

    @property
    def idle_files(self) -> set[str]:
        """Return the files that ran in the idle time as well."""
        return self.files & {file for file, _ in self.idle}

    @property
    def own_files(self) -> set[str]:
        """Return the files with a function that did not run in the idle time."""
        return {file for file, _ in self.ran - self.idle}


@dataclass(frozen=True)
class Durations:
    """Time that an instance took until it was provisioned, and a network until it was gone."""

    create_s: float
    delete_s: float


class Program:
    """A running program: its recorder and its API."""

    def __init__(self, process: subprocess.Popen[str], results: IO[str], credentials: Mapping[str, Any]) -> None:
        self._process, self._results, self._credentials = process, results, credentials

    def record(self, action: Callable[[], object], seconds: float) -> Functions:
        """Return the functions that run during an action and some time after it."""
        self._command("start")
        action()
        time.sleep(seconds)
        return frozenset((file, name) for file, name in self._command("stop"))

    def _command(self, command: str) -> Any:
        assert self._process.stdin is not None
        print(command, file=self._process.stdin, flush=True)
        return json.loads(self._results.readline())

    def request(self, method: str, service: str, path: str, body: object = None) -> Response:
        """Send a request and return the status and the document of the response."""
        credentials = self._credentials
        headers = {"Authorization": f"Bearer {credentials['token']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        url = f"{credentials['endpoints'][service]}{path}"
        return send(urllib.request.Request(url, data, headers, method=method))

    def create_network(self, name: str) -> str:
        """Create a network and return its path once it is provisioned."""
        spec = self._owner() | {"regionId": self._credentials["regionId"], "prefix": "10.0.0.0/24"}
        body = {"metadata": {"name": name}, "spec": spec | {"dnsNameservers": []}}
        network = expect(HTTPStatus.CREATED, self.request("POST", "region", "/api/v2/networks", body))["metadata"]["id"]
        path = f"/api/v2/networks/{network}"
        wait(lambda: is_provisioned(self.request("GET", "region", path)), FINISH_S)
        return path

    def create_instance(self, network: str) -> str:
        """Create an instance and return its path."""
        spec = self._owner() | {name: self._credentials[name] for name in ("flavorId", "imageId")}
        body = {"metadata": {"name": "traced"}, "spec": spec | {"networkId": network.rpartition("/")[2]}}
        found = expect(HTTPStatus.CREATED, self.request("POST", "compute", "/api/v2/instances", body))
        return f"/api/v2/instances/{found['metadata']['id']}"

    def delete_network(self, path: str) -> None:
        """Request the deletion of a network."""
        expect(HTTPStatus.ACCEPTED, self.request("DELETE", "region", path))

    def _owner(self) -> dict[str, Any]:
        return {name: self._credentials[name] for name in ("organizationId", "projectId")}


def send(request: urllib.request.Request) -> Response:
    """Send a request and return the status and the document of the response."""
    try:
        with urllib.request.urlopen(request, timeout=FINISH_S) as response:
            status, text = response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read()
    return status, json.loads(text) if text else None


def expect(status: int, response: Response) -> Any:
    """Return the document of a response that has the right status."""
    if response[0] != status:
        raise RuntimeError(f"status {response[0]} instead of {status}: {response[1]}")
    return response[1]


def is_provisioned(response: Response) -> bool:
    """Tell whether a response shows a provisioned resource."""
    return bool(expect(HTTPStatus.OK, response)["metadata"]["provisioningStatus"] == "provisioned")


def wait(is_over: Callable[[], bool], seconds: float) -> float:
    """Wait for something and return how long it took."""
    began = time.monotonic()
    while not is_over():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not over after {seconds:g} s")
        time.sleep(0.1)
    return time.monotonic() - began


@contextmanager
def running(checkout: Path) -> Iterator[Program]:
    """Run the program of a checkout under trace, with a data directory of its own."""
    with tempfile.TemporaryDirectory(prefix="remuda-trace-") as home, Path(home, "log").open("w+") as log:
        address, data = f"127.0.0.1:{free_port()}", Path(home, "data")
        reading, writing = os.pipe()
        source = checkout / "src" / "remuda"
        command = [python_of(checkout), "-P", TRACED, str(writing), source, "up", "--data", data, "--listen", address]
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
            pass_fds=[writing],
            env=environment(checkout),
        )
        os.close(writing)
        try:
            with os.fdopen(reading) as results:
                wait(lambda: is_ready(process, address), START_S)
                yield Program(process, results, json.loads((data / "credentials.json").read_text()))
        except Exception:
            log.seek(0)
            sys.stderr.writelines(log.readlines()[-20:])
            raise
        finally:
            stop(process)


def python_of(checkout: Path) -> Path:
    """Return the Python with the dependencies of a checkout: its own, or else this one."""
    own = checkout / ".venv" / "bin" / "python"
    return own if own.exists() else Path(sys.executable)


def environment(checkout: Path) -> dict[str, str]:
    """Return an environment in which the source of the checkout is imported, and nothing else is configured."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REMUDA_")}
    return kept | {"PYTHONPATH": str(checkout / "src"), "PYTHONHASHSEED": "0"}


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def is_ready(process: subprocess.Popen[str], address: str) -> bool:
    """Tell whether the program is ready; it is an error if it has ended."""
    if process.poll() is not None:
        raise RuntimeError(f"the program ended with code {process.returncode}")
    try:
        return send(urllib.request.Request(f"http://{address}/readyz"))[0] == HTTPStatus.OK
    except OSError:
        return False


def stop(process: subprocess.Popen[str]) -> None:
    """End the program as an operator would, or by force."""
    process.terminate()
    try:
        process.wait(START_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.stdin is not None:
            process.stdin.close()


def measure_durations(checkout: Path) -> Durations:
    """Measure how long the requests take in a checkout, in a trial run that polls."""
    with running(checkout) as program:
        network = program.create_network("trial")
        instance = program.create_instance(network)
        create_s = wait(lambda: is_provisioned(program.request("GET", "compute", instance)), FINISH_S)
        empty = program.create_network("empty")
        program.delete_network(empty)
        return Durations(
            create_s, wait(lambda: program.request("GET", "region", empty)[0] == HTTPStatus.NOT_FOUND, FINISH_S)
        )


def trace(checkout: Path) -> dict[str, Trace]:
    """Return the traces of three requests to the program of a checkout."""
    durations = measure_durations(checkout)
    create_s, delete_s = (1.5 * each + 1 for each in (durations.create_s, durations.delete_s))
    created: list[str] = []
    with running(checkout) as program:
        network, empty = program.create_network("network"), program.create_network("empty")
        time.sleep(SETTLE_S)
        before = program.record(lambda: None, create_s)
        post = program.record(lambda: created.append(program.create_instance(network)), create_s)
        (instance,) = created
        if not is_provisioned(program.request("GET", "compute", instance)):
            raise TimeoutError(f"the instance took longer than {create_s:.1f} s, unlike in the trial run")
        time.sleep(SETTLE_S)
        after = program.record(lambda: None, delete_s)
        get = program.record(lambda: expect(HTTPStatus.OK, program.request("GET", "compute", instance)), SHORT_S)
        delete = program.record(lambda: program.delete_network(empty), delete_s)
        expect(HTTPStatus.NOT_FOUND, program.request("GET", "region", empty))
    return {
        "POST instance until provisioned": Trace(post, before),
        "GET instance": Trace(get, after),
        "DELETE network until gone": Trace(delete, after),
    }


def show(traces: Mapping[Path, Mapping[str, Trace]], *, is_summary: bool) -> None:
    """Print the numbers of every checkout beside those of the first, and the files."""
    first = next(iter(traces.values()))
    for request in first:
        print(f"{request}\n{'':4}{'all':>6}{'idle':>6}{'own':>6}  all, own of the first checkout's")
        for checkout, found in traces.items():
            each, base = found[request], first[request]
            ratios = len(each.files) / len(base.files), len(each.own_files) / len(base.own_files)
            print(
                f"{'':4}{len(each.files):6}{len(each.idle_files):6}{len(each.own_files):6}"
                f"  {ratios[0]:.2f}, {ratios[1]:.2f}  {checkout}"
            )
        for checkout, found in traces.items() if not is_summary else ():
            print(f"\n  {request}: {checkout}\n")
            show_files(found[request])
        print()


def show_files(found: Trace) -> None:
    """Print the files of a trace by package; `~` marks those whose functions all ran in the idle time too."""
    for package, count in sorted(Counter(map(package_of, found.files)).items()):
        print(f"    {package} ({count})")
        for file in sorted(file for file in found.files if package_of(file) == package):
            print(f"      {' ' if file in found.own_files else '~'} {file}")


def package_of(file: str) -> str:
    """Return the top package of a file."""
    return file.partition("/")[0] if "/" in file else "."


def document(traces: Mapping[Path, Mapping[str, Trace]]) -> dict[str, object]:
    """Return everything as one document."""
    return {
        str(checkout): {
            request: {"all": sorted(each.files), "idle": sorted(each.idle_files), "own": sorted(each.own_files)}
            for request, each in found.items()
        }
        for checkout, found in traces.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Trace the checkouts and print what ran."""
    parser = argparse.ArgumentParser(prog="python -m tools.trace_files", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--checkout", type=Path, action="append", required=True, help="a working copy; may be repeated")
    parser.add_argument("--summary", action="store_true", help="print the numbers only, not the files")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    if missing := [path for path in options.checkout if not (path / "src" / "remuda").is_dir()]:
        parser.error(f"no src/remuda in {', '.join(map(str, missing))}")
    traces = {checkout: trace(checkout) for checkout in map(Path.resolve, options.checkout)}
    if options.json:
        print(json.dumps(document(traces), indent=1))
    else:
        show(traces, is_summary=options.summary)


if __name__ == "__main__":
    main()
