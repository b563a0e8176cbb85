"""Configuration files of the services: functions of the installation, the directory and the ports, and nothing else."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.kit.child_processes import free_ports
from tests.openstack.plane.programs import Programs

PASSWORD = "secret"
REGION = "RegionOne"
COMPUTE_HOSTS = ("compute-1", "compute-2")
SERVERS = (
    *("mariadb", "rabbitmq", "epmd", "erlang"),
    *("keystone", "glance", "placement", "nova", "neutron", "cinder", "octavia"),
)
"""Everything that listens on a port."""
CATALOG = {
    "keystone": ("identity", "/v3"),
    "glance": ("image", ""),
    "placement": ("placement", ""),
    "nova": ("compute", "/v2.1"),
    "neutron": ("network", ""),
    "cinder": ("block-storage", "/v3"),
    "octavia": ("load-balancer", ""),
}
"""Service type and path of each API."""

Options = Mapping[str, object]
Sections = Mapping[str, Options]

MANAGER = "role:manager and project_id:%(project_id)s"
POLICIES: Mapping[str, Mapping[str, str]] = {
    "nova": {
        "os_compute_api:os-quota-sets:update": f"rule:context_is_admin or ({MANAGER})",
        "os_compute_api:os-quota-sets:delete": f"rule:context_is_admin or ({MANAGER})",
        "os_compute_api:servers:create:forced_host": f"rule:context_is_admin or ({MANAGER})",
        "compute:servers:create:requested_destination": f"rule:context_is_admin or ({MANAGER})",
    },
    "neutron": {
        "create_network:provider:network_type": "rule:admin_only or role:manager",
        "create_network:provider:physical_network": "rule:admin_only or role:manager",
        "create_network:provider:segmentation_id": "rule:admin_only or role:manager",
        "update_quota": f"rule:admin_only or ({MANAGER})",
        "delete_quota": f"rule:admin_only or ({MANAGER})",
    },
    "cinder": {
        "volume_extension:quotas:update": f"rule:admin_api or ({MANAGER})",
        "volume_extension:quotas:delete": f"rule:admin_api or ({MANAGER})",
    },
    "placement": {
        "placement:allocation_candidates:list": "role:admin or role:manager",
        "placement:resource_providers:list": "role:admin or role:manager",
    },
}
"""What a region needs beyond the role of a domain manager: quotas, VLAN networks and pinned hosts."""


@dataclass(frozen=True)
class Configuration:
    """Everything that the configuration files depend on."""

    programs: Programs
    directory: Path

    @cached_property
    def ports(self) -> Mapping[str, int]:
        """Ports by server, chosen once for a directory: the service catalogue in its database has them."""
        file = self.directory / "ports.json"
        if not file.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(dict(zip(SERVERS, free_ports(len(SERVERS)), strict=True))))
        found: Mapping[str, int] = json.loads(file.read_text())
        return found

    @property
    def files(self) -> Path:
        return self.directory / "etc"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def run(self) -> Path:
        return self.directory / "run"

    def url(self, service: str) -> str:
        return f"http://127.0.0.1:{self.ports[service]}"

    def endpoint(self, service: str) -> str:
        return self.url(service) + CATALOG[service][1]

    @property
    def auth_url(self) -> str:
        return self.endpoint("keystone")

    @property
    def rabbitmq(self) -> str:
        return f"rabbit://guest:guest@127.0.0.1:{self.ports['rabbitmq']}/"

    def database(self, name: str) -> dict[str, object]:
        # Small pools, because a dozen processes share one MariaDB.
        url = f"mysql+pymysql://root@127.0.0.1:{self.ports['mariadb']}/{name}?charset=utf8"
        return {"connection": url, "max_pool_size": 8, "max_overflow": 16, "connection_recycle_time": 600}

    def credentials(self, user: str) -> dict[str, object]:
        return {
            "auth_type": "password",
            "auth_url": self.auth_url,
            "username": user,
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
            "region_name": REGION,
        }

    def token_checks(self, service: str) -> dict[str, object]:
        return self.credentials(service) | {
            "www_authenticate_uri": self.url("keystone"),
            "service_token_roles": "service",
            "service_token_roles_required": True,
            "service_type": CATALOG[service][0],
        }

    def service_user(self, service: str) -> dict[str, object]:
        return self.credentials(service) | {"send_service_user_token": True}

    def path(self, service: str, name: str | None = None) -> Path:
        """Return the path of a configuration file."""
        return self.files / service / (name or f"{service}.conf")

    def write(self, created: Mapping[str, str]) -> None:
        """Write all files. `created` has the ids that Octavia needs, once the objects exist."""
        for directory in (self.log, self.run, *(self.data / each for each in DATA_DIRECTORIES)):
            directory.mkdir(parents=True, exist_ok=True)
        for (service, name), sections in self._all(created).items():
            path = self.path(service, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_ini(sections))
        for service, rules in POLICIES.items():
            self.path(service, "policy.yaml").write_text(json.dumps(rules, indent=1))
        for service in ("nova", "neutron"):  # their APIs read these beside their configuration
            shutil.copy(self.programs.data_files / service / "api-paste.ini", self.files / service)

    def _all(self, created: Mapping[str, str]) -> dict[tuple[str, str], Sections]:
        nova = self._nova()
        hosts = {("nova", f"{host}.conf"): self._compute(nova, host) for host in COMPUTE_HOSTS}
        return hosts | {
            ("keystone", "keystone.conf"): self._keystone(),
            ("glance", "glance-api.conf"): self._glance(),
            ("glance", "glance-image-import.conf"): IMAGE_IMPORT,
            ("placement", "placement.conf"): self._placement(),
            ("nova", "nova.conf"): nova,
            ("neutron", "neutron.conf"): self._neutron(),
            ("neutron", "ml2.conf"): MODULAR_LAYER_2,
            ("cinder", "cinder.conf"): self._cinder(),
            ("octavia", "octavia.conf"): self._octavia(created),
        }

    def _messages(self, locks: str) -> Sections:
        return {
            "oslo_messaging_notifications": {"driver": "noop"},
            "oslo_messaging_rabbit": {"heartbeat_timeout_threshold": 0},
            "oslo_concurrency": {"lock_path": self.data / "locks" / locks},
        }

    def _policy(self, service: str) -> Sections:
        return {"oslo_policy": {"policy_file": self.path(service, "policy.yaml")}}

    def _keystone(self) -> Sections:
        return {
            "DEFAULT": {"public_endpoint": self.url("keystone")},
            "database": self.database("keystone"),
            "token": {"provider": "fernet", "expiration": 4 * 3600},
            "fernet_tokens": {"key_repository": self.data / "keystone/fernet"},
            "credential": {"key_repository": self.data / "keystone/credential"},
            "identity": {"password_hash_rounds": 4},  # the cheapest, because every service logs in often
        }

    def _glance(self) -> Sections:
        images = self.data / "glance"
        return {
            "DEFAULT": {
                "enabled_backends": "files:file",
                "enabled_import_methods": "[glance-direct,web-download]",
                "workers": 0,
                "transport_url": self.rabbitmq,
                "node_staging_uri": f"file://{images}/staging",
            },
            "database": self.database("glance"),
            "keystone_authtoken": self.token_checks("glance"),
            "paste_deploy": {
                "flavor": "keystone",
                "config_file": self.programs.data_files / "glance/glance-api-paste.ini",
            },
            "glance_store": {"default_backend": "files"},
            "files": {"filesystem_store_datadir": images / "images"},
            "os_glance_staging_store": {"filesystem_store_datadir": images / "staging"},
            "os_glance_tasks_store": {"filesystem_store_datadir": images / "tasks"},
            **self._messages("glance"),
        }

    def _placement(self) -> Sections:
        return {
            "placement_database": self.database("placement"),
            "api": {"auth_strategy": "keystone"},
            "keystone_authtoken": self.token_checks("placement"),
            **self._policy("placement"),
        }

    def _nova(self) -> dict[str, Options]:
        return {
            "DEFAULT": {
                "transport_url": self.rabbitmq,
                "my_ip": "127.0.0.1",
                "state_path": self.data / "nova",
                "compute_driver": "simulated.SimulatedDriver",
                "report_interval": 5,
                "service_down_time": 30,
                "sync_power_state_interval": 60,
                "heal_instance_info_cache_interval": 60,
                "force_config_drive": False,
            },
            "api_database": self.database("nova_api"),
            "database": self.database("nova_cell1"),
            "keystone_authtoken": self.token_checks("nova"),
            "service_user": self.service_user("nova"),
            "glance": self.credentials("nova"),
            "neutron": self.credentials("nova")
            | {"service_metadata_proxy": True, "metadata_proxy_shared_secret": PASSWORD},
            "placement": self.credentials("nova"),
            "cinder": self.credentials("nova") | {"catalog_info": "block-storage::publicURL", "os_region_name": REGION},
            "conductor": {"workers": 1},
            "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": -1},
            "filter_scheduler": {"track_instance_changes": False},
            "vnc": {"enabled": True, "novncproxy_base_url": "https://console.example/vnc_lite.html"},
            "wsgi": {"api_paste_config": self.programs.data_files / "nova/api-paste.ini"},
            **self._messages("nova"),
            **self._policy("nova"),
        }

    def _compute(self, nova: Mapping[str, Options], host: str) -> Sections:
        """Return the configuration of one host, which may not have the databases."""
        own = {name: options for name, options in nova.items() if "database" not in name}
        own["DEFAULT"] = {**nova["DEFAULT"], "host": host, "state_path": self.data / "nova" / host}
        own["oslo_concurrency"] = {"lock_path": self.data / "locks" / host}
        return own

    def _neutron(self) -> Sections:
        return {
            "DEFAULT": {
                "core_plugin": "ml2",
                "service_plugins": "router,qos,port_forwarding,network_ip_availability",
                "transport_url": self.rabbitmq,
                "api_paste_config": self.programs.data_files / "neutron/api-paste.ini",
                "state_path": self.data / "neutron",
                "dhcp_agent_notification": False,
                "allow_automatic_l3agent_failover": False,
                "rpc_workers": 0,
                "notify_nova_on_port_status_changes": True,
                "notify_nova_on_port_data_changes": True,
                "send_events_interval": 1,
            },
            "nova": self.credentials("nova"),
            "placement": self.credentials("neutron"),
            "database": self.database("neutron"),
            "keystone_authtoken": self.token_checks("neutron"),
            **self._messages("neutron"),
            **self._policy("neutron"),
        }

    def _cinder(self) -> Sections:
        return {
            "DEFAULT": {
                "transport_url": self.rabbitmq,
                "my_ip": "127.0.0.1",
                "host": "volume-1",
                "state_path": self.data / "cinder",
                "auth_strategy": "keystone",
                "api_paste_config": self.programs.data_files / "cinder/api-paste.ini",
                "resource_query_filters_file": self.programs.data_files / "cinder/resource_filters.json",
                "glance_api_servers": self.url("glance"),
                "enabled_backends": "simulated",
                "default_volume_type": "simulated",
                "report_interval": 5,
                "volume_clear": "none",
                "target_ip_address": "127.0.0.1",
                "image_conversion_dir": self.data / "cinder/conversion",
            },
            "simulated": {
                "volume_driver": "remuda_drivers.volume.SimulatedVolumeDriver",
                "volume_backend_name": "simulated",
            },
            "database": self.database("cinder"),
            "keystone_authtoken": self.token_checks("cinder"),
            "service_user": self.service_user("cinder"),
            "nova": self.credentials("cinder") | {"interface": "public"},
            "coordination": {"backend_url": f"file://{self.data}/cinder/coordination"},
            "key_manager": {"backend": "cinder.keymgr.conf_key_mgr.ConfKeyManager", "fixed_key": "0" * 64},
            **self._messages("cinder"),
            **self._policy("cinder"),
        }

    def _octavia(self, created: Mapping[str, str]) -> Sections:
        authority = self.data / "octavia"
        return {
            "DEFAULT": {"transport_url": self.rabbitmq},
            "api_settings": {
                "auth_strategy": "keystone",
                "bind_host": "127.0.0.1",
                "bind_port": self.ports["octavia"],
                "api_base_uri": self.url("octavia"),
                "enabled_provider_drivers": "amphora:amphora,octavia:alias",
                "default_provider_driver": "amphora",
            },
            "database": self.database("octavia"),
            "keystone_authtoken": self.token_checks("octavia"),
            "service_auth": self.credentials("octavia"),
            "certificates": {
                "cert_generator": "local_cert_generator",
                "cert_manager": "local_cert_manager",
                "ca_certificate": authority / "ca.pem",
                "ca_private_key": authority / "ca.key",
                "server_certs_key_passphrase": "insecure-key-do-not-use-this-key",
            },
            "haproxy_amphora": {"client_cert": authority / "client.pem", "server_ca": authority / "ca.pem"},
            "health_manager": {
                "heartbeat_key": PASSWORD,
                "bind_ip": "127.0.0.1",
                "controller_ip_port_list": "127.0.0.1:15555",
            },
            "controller_worker": {  # Nova and Neutron are real; only the talk with the amphora is left out
                "amphora_driver": "amphora_noop_driver",
                "compute_driver": "compute_nova_driver",
                "network_driver": "allowed_address_pairs_driver",
                "volume_driver": "volume_noop_driver",
                "image_driver": "image_glance_driver",
                "client_ca": authority / "ca.pem",
                "amp_image_tag": "amphora",
                "amp_flavor_id": "amphora",
                "amp_boot_network_list": created.get("management_network", ""),
                "amp_secgroup_list": created.get("management_group", ""),
                "amp_active_wait_sec": 1,
                "amp_active_retries": 60,
                "loadbalancer_topology": "SINGLE",
                "workers": 1,
            },
            "networking": {"port_detach_timeout": 60},
            "oslo_messaging": {"topic": "octavia_prov"},
            **self._messages("octavia"),
        }


IMAGE_IMPORT: Sections = {
    "import_filtering_opts": {
        "allowed_schemes": "[http,https]",
        "disallowed_hosts": "[127.0.0.2,localhost]",
        "allowed_ports": "[]",
    },
    "image_import_opts": {"image_import_plugins": "[]"},
}
MODULAR_LAYER_2: Sections = {
    "ml2": {
        "type_drivers": "flat,vlan,vxlan",
        "mechanism_drivers": "simulated",
        "project_network_types": "vxlan",
        "extension_drivers": "port_security,qos",
    },
    "ml2_type_flat": {"flat_networks": "*"},
    "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:3000"},
    "ml2_type_vxlan": {"vni_ranges": "1:100000"},
    "securitygroup": {"enable_security_group": True},
}
DATA_DIRECTORIES = (
    "mariadb",
    "rabbitmq",
    "locks",
    "keystone/fernet",
    "keystone/credential",
    "glance/images",
    "glance/staging",
    "glance/tasks",
    *(f"nova/{host}" for host in COMPUTE_HOSTS),
    "neutron",
    "cinder/conversion",
    "cinder/coordination",
    "octavia",
)


def _ini(sections: Sections) -> str:
    lines: list[str] = []
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in options.items()), ""]
    return "\n".join(lines)
