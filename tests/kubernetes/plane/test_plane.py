"""The plane keeps what its modules promise: a real API, real controllers, real crashes, and nothing left behind."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.resources.core_v1 import Namespace

from tests.kit.planes import processes_in
from tests.kubernetes.plane.certificates import by_path, write_kubeconfig
from tests.kubernetes.plane.components import Component
from tests.kubernetes.plane.plane import Plane, PlaneError

pytestmark = pytest.mark.kubernetes

ROOT = Path(__file__).resolve().parents[3]
GROUP = "plane.remuda.test"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with Plane(tmp_path_factory.mktemp("plane")) as running:
        status, answer = running.admin_request(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION
        )
        assert status == 201, answer
        eventually(lambda: running.admin_request("GET", WIDGETS)[0] == 200)
        yield running


def eventually(holds: Callable[[], bool], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def create_widget(plane: Plane, name: str, owner: Any = None) -> Any:
    metadata: dict[str, Any] = {"name": name}
    if owner is not None:
        reference = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}
        metadata["ownerReferences"] = [{"apiVersion": f"{GROUP}/v1", "kind": "Widget", **reference}]
    widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata}
    status, answer = plane.admin_request("POST", WIDGETS, widget)
    assert status == 201, answer
    return answer


def test_it_is_the_version_that_go_mod_names(plane: Plane) -> None:
    status, answer = plane.admin_request("GET", "/version")
    assert (status, answer["gitVersion"]) == (200, "v1.36.3")


def test_a_watch_sees_a_new_object(plane: Plane) -> None:
    _, listing = plane.admin_request("GET", WIDGETS)
    version = listing["metadata"]["resourceVersion"]
    create_widget(plane, "seen")
    status, text = plane.admin_request("GET", f"{WIDGETS}?watch=true&resourceVersion={version}&timeoutSeconds=1")
    events = [json.loads(line) for line in text.splitlines()] if isinstance(text, str) else [text]
    assert status == 200
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "seen")]


def test_a_foreground_deletion_takes_the_child_first(plane: Plane) -> None:
    plane.restart("controller-manager")  # it looks for new kinds when it starts, and then only every 30 s
    owner = create_widget(plane, "owner")
    create_widget(plane, "child", owner)
    status, answer = plane.admin_request("DELETE", f"{WIDGETS}/owner", {"propagationPolicy": "Foreground"})
    assert (status, answer["metadata"]["finalizers"]) == (200, ["foregroundDeletion"])
    eventually(lambda: plane.admin_request("GET", f"{WIDGETS}/owner")[0] == 404)
    assert plane.admin_request("GET", f"{WIDGETS}/child")[0] == 404


@pytest.mark.parametrize("component", ["apiserver", "etcd"])
def test_data_survives_a_kill(plane: Plane, component: Component) -> None:
    name = f"survives-{component}"
    uid = create_widget(plane, name)["metadata"]["uid"]
    before = plane.pid(component)
    plane.restart(component)
    status, answer = plane.admin_request("GET", f"{WIDGETS}/{name}")
    assert (status, answer["metadata"]["uid"]) == (200, uid)
    assert plane.pid(component) != before


def test_a_component_outlives_the_thread_that_restarted_it(plane: Plane) -> None:
    worker = threading.Thread(target=plane.restart, args=("controller-manager", signal.SIGTERM))
    worker.start()
    worker.join()
    time.sleep(0.2)
    assert len(processes_in(plane.directory)) == 3


def verdict(kubeconfig: Path) -> tuple[int, str]:
    """Ask, as a client would, for what only the admin may see."""
    with Client(config=KubeConfig.from_file(kubeconfig).get()) as client:
        try:
            return 200, f"{len(list(client.list(Namespace)))} namespaces"
        except ApiError as rejection:
            return rejection.status.code or 0, rejection.status.message or ""


def test_kubeconfigs_log_in_as_whom_they_say(plane: Plane, tmp_path: Path) -> None:
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    eventually(lambda: plane.admin_request("GET", account)[0] == 200)
    _, issued = plane.admin_request("POST", f"{account}/token", {"spec": {}})
    ann = plane.authority.issue("ann", groups=("herders",))
    by_files = write_kubeconfig(tmp_path / "files", plane.url, plane.authority.pem, by_path(*ann.save(tmp_path, "ann")))
    assert 'User "ann"' in verdict(plane.issue_kubeconfig(tmp_path / "embedded", ann))[1]
    assert 'User "ann"' in verdict(by_files)[1]
    by_token = plane.issue_kubeconfig(tmp_path / "token", issued["status"]["token"])
    assert 'User "system:serviceaccount:default:default"' in verdict(by_token)[1]
    assert verdict(plane.kubeconfig)[0] == 200


def test_an_expired_certificate_is_unauthorized(plane: Plane, tmp_path: Path) -> None:
    late = plane.authority.issue("late", lifetime=timedelta(seconds=-1))
    assert verdict(plane.issue_kubeconfig(tmp_path / "late", late))[0] == 401


def test_what_does_not_come_up_shows_its_log(tmp_path: Path) -> None:
    plane = Plane(tmp_path, fsync=False, apiserver_args=["--no-such-flag"])
    with pytest.raises(PlaneError, match=r"apiserver ended by itself(?s:.*)unknown flag: --no-such-flag"):
        plane.start()
    assert processes_in(tmp_path) == []


def test_a_stopped_plane_leaves_no_process_and_comes_back_with_its_data(tmp_path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}
    with Plane(tmp_path, fsync=False) as plane:
        assert plane.admin_request("POST", "/api/v1/namespaces", namespace)[0] == 201
        assert len(processes_in(tmp_path)) == 3
    assert processes_in(tmp_path) == []
    with Plane(tmp_path, fsync=False) as again:
        assert again.url == plane.url
        assert again.admin_request("GET", "/api/v1/namespaces/kept")[0] == 200


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_command_line(tmp_path: Path, sign: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.kubernetes.plane", "up", "--dir", str(tmp_path), "--no-fsync"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as up:
        assert up.stdout is not None
        assert up.stdout.readline() == f"KUBECONFIG={tmp_path}/kubeconfig\n"
        assert len(processes_in(tmp_path)) == 3
        up.send_signal(sign)
    eventually(lambda: processes_in(tmp_path) == [], within_s=5)
