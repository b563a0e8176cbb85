"""User data is sealed wherever it is at rest: in the store, in the simulated clouds, in backups of both."""

import shutil
from pathlib import Path

from tests.kit.compute.environment import JAMMY, running
from tests.kit.compute.requests import DEBIAN, at, encoded
from tests.kit.identity.canaries import is_in
from tests.kit.identity.environment import expect

MARKER = "planted-marker-91c2e07b4d"


def user_data(number: int) -> str:
    return encoded(f"#cloud-config\nruncmd: [echo {number}-{MARKER}]\nwrite_files: [{{path: /k, content: {MARKER}}}]\n")


def files_with(text: str, directory: Path) -> list[str]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if is_in(path.read_bytes(), text))


async def test_m27_user_data_is_in_no_file_of_the_store_of_a_cloud_or_of_a_backup(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    async with running(data) as compute:
        network = await compute.region.network()
        await compute.region.until(f"/api/v2/networks/{network}", "provisioned")
        instance = await compute.instance(network, "a-readable-name", imageId=DEBIAN, userData=user_data(1))
        shown = await compute.until(instance, "provisioned")
        for number, image in ((2, DEBIAN), (3, JAMMY)):
            spec = {**shown["spec"], "userData": user_data(number), "imageId": image}
            expect(await compute.root.put(at(instance), {"metadata": {"name": "a-readable-name"}, "spec": spec}), 202)
            await compute.until(instance, "provisioned")
        output = expect(await compute.root.get(at(instance, "consoleoutput")), 200)["contents"]
        assert "cloud-init" in output, "the cloud has read it"
        assert MARKER not in output
        await compute.store.back_up(tmp_path / "backup.db")
        shutil.copytree(data, tmp_path / "copied while it runs")
        assert len({path.name for path in data.rglob("*.db")}) > 1, "the store, and a cloud"
        assert files_with(MARKER, tmp_path) == []
    assert files_with(MARKER, tmp_path) == []
    assert {"remuda.db", "backup.db"} <= {*files_with("a-readable-name", tmp_path)}, "the search finds texts"
    assert [name for name in files_with("a-readable-name", data) if name.startswith("sim-")], "in clouds, too"
