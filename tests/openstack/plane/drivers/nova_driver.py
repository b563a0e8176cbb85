"""Nova driver without a hypervisor: Nova's own fake, with what clients would see of a real one.

Installed as nova/virt/simulated.py, because Nova loads drivers only from there.

- A snapshot uploads an image, so that it becomes active.
- nova-compute can be restarted, and its guests are still there.
- The console output has the name and the user data of the server.
- Server metadata asks for failures: `simulated.build_delay` in seconds; `simulated.build_failure` fails on this host,
  so that the scheduler tries the next; `simulated.build_abort` fails for good.
- The environment variable SIMULATED_RESOURCES is a JSON object of resource classes with their totals.
"""

import base64
import io
import json
import os
import time

from nova import exception
from nova.compute import power_state, task_states, vm_states
from nova.image import glance
from nova.virt import driver, fake, node

IMAGE_CONTENT = b"snapshot".ljust(4096, b"\0")
WITHOUT_GUEST = (None, vm_states.BUILDING, vm_states.DELETED, vm_states.SOFT_DELETED)


class SimulatedDriver(fake.FakeDriver):
    """Guests in memory, found again from what Nova's database says of them."""

    vcpus = 256
    memory_mb = 1024 * 1024
    local_gb = 100 * 1024
    capabilities = fake.FakeDriver.capabilities | {"supports_image_type_qcow2": True}

    def get_nodenames_by_uuid(self, refresh=False):
        # Nova's fake invents an id at every start, and then does not start a second time.
        return driver.ComputeDriver.get_nodenames_by_uuid(self, refresh)

    def get_available_resource(self, nodename):
        resources = super().get_available_resource(nodename)
        if resources:
            resources["uuid"] = node.get_local_node_uuid()
        return resources

    def get_info(self, instance, use_cache=True):
        if instance.task_state is None:
            self._find_again(instance)
        return super().get_info(instance, use_cache=use_cache)

    def power_off(self, instance, timeout=0, retry_interval=0):
        self._find_again(instance)
        return super().power_off(instance, timeout, retry_interval)

    def power_on(self, context, instance, *args, **kwargs):
        self._find_again(instance)
        return super().power_on(context, instance, *args, **kwargs)

    def spawn(self, context, instance, *args, **kwargs):
        metadata = instance.metadata or {}
        time.sleep(float(metadata.get("simulated.build_delay", 0)))
        if "simulated.build_abort" in metadata:
            reason = metadata["simulated.build_abort"]
            raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=reason)
        if "simulated.build_failure" in metadata:
            raise exception.NovaException(metadata["simulated.build_failure"])
        return super().spawn(context, instance, *args, **kwargs)

    def snapshot(self, context, instance, image_id, update_task_state):
        self._find_again(instance)
        if instance.uuid not in self.instances:
            raise exception.InstanceNotRunning(instance_id=instance.uuid)
        update_task_state(task_state=task_states.IMAGE_PENDING_UPLOAD)
        images = glance.API()
        image = images.get(context, image_id)
        description = {
            "name": image["name"],
            "disk_format": image.get("disk_format") or "raw",
            "container_format": image.get("container_format") or "bare",
            "properties": {"image_location": "snapshot", "image_state": "available", "owner_id": instance.project_id},
        }
        update_task_state(task_state=task_states.IMAGE_UPLOADING, expected_state=task_states.IMAGE_PENDING_UPLOAD)
        images.update(context, image_id, description, io.BytesIO(IMAGE_CONTENT), purge_props=False)

    def get_console_output(self, context, instance):
        user_data = base64.b64decode(instance.user_data or "").decode("utf-8", "replace")
        lines = ["[    0.000000] Linux version 6.1.0", f"Booting {instance.hostname} ({instance.uuid})", user_data]
        return "\n".join([*lines, f"{instance.hostname} login: ", ""]).encode()

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = dict(provider_tree.data(nodename).inventory)
        for name, total in json.loads(os.environ.get("SIMULATED_RESOURCES", "{}")).items():
            fixed = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
            inventory[name] = {"total": total, "max_unit": total, **fixed}
        provider_tree.update_inventory(nodename, inventory)

    def _find_again(self, instance):
        """Add a guest that an earlier process of this host has built."""
        if instance.uuid in self.instances or instance.vm_state in WITHOUT_GUEST:
            return
        is_stopped = instance.vm_state == vm_states.STOPPED
        state = power_state.SHUTDOWN if is_stopped else power_state.RUNNING
        self.instances[instance.uuid] = fake.FakeInstance(instance.name, state, instance.uuid)
