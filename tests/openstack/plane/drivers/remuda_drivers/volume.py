"""Cinder driver without data: every operation succeeds at once."""

import io

from cinder.volume import driver

POOL = {
    "pool_name": "pool",
    "total_capacity_gb": 100_000,
    "free_capacity_gb": 100_000,
    "allocated_capacity_gb": 0,
    "provisioned_capacity_gb": 0,
    "reserved_percentage": 0,
    "thin_provisioning_support": True,
    "max_over_subscription_ratio": 20.0,
    "multiattach": True,
}
CONTENT = bytes(4096)


class SimulatedVolumeDriver(driver.VolumeDriver):
    """Keeps nothing but what Cinder's database has."""

    VERSION = "1"
    CI_WIKI_NAME = "none"

    def _succeed(self, *_, **__):
        """Do nothing."""

    do_setup = check_for_setup_error = _succeed
    create_volume = delete_volume = extend_volume = _succeed
    create_snapshot = delete_snapshot = create_volume_from_snapshot = create_cloned_volume = _succeed
    ensure_export = create_export = remove_export = terminate_connection = _succeed
    copy_image_to_volume = _succeed

    def _update_volume_stats(self):
        self._stats = {
            "volume_backend_name": self.configuration.safe_get("volume_backend_name"),
            "vendor_name": "Remuda",
            "driver_version": self.VERSION,
            "storage_protocol": "simulated",
            "pools": [POOL],
        }

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        return {"provider_location": None}, True

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        image_service.update(context, image_meta["id"], {}, io.BytesIO(CONTENT))

    def initialize_connection(self, volume, connector):
        return {"driver_volume_type": "simulated", "data": {"volume_id": volume["id"], "access_mode": "rw"}}

    def retype(self, context, volume, new_type, diff, host):
        return True, None
