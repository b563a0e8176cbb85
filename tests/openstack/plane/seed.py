"""First content of an OpenStack, written through its APIs. Runs in its own virtual environment.

`python seed.py STEP` reads the facts as JSON from standard input and prints the ids that it created as JSON.
"""

import io
import json
import sys
import time

import openstack
from openstack import exceptions

ROLES = ("service", "manager", "load-balancer_member", "load-balancer_observer", "load-balancer_admin")
IMPLIED_ROLES = (
    ("member", "load-balancer_member"),
    ("reader", "load-balancer_observer"),
    ("admin", "load-balancer_admin"),
)
FLAVORS = (  # name, CPUs, MiB of memory, GiB of disk, extra specs
    ("m1.tiny", 1, 512, 1, {}),
    ("m1.small", 1, 2048, 20, {}),
    ("m1.medium", 2, 4096, 40, {}),
    ("m1.large", 4, 8192, 80, {}),
    ("m1.diskless", 1, 2048, 0, {}),
    ("c1.large", 8, 16384, 80, {"hw:cpu_sockets": "1", "hw:cpu_threads": "2"}),
    ("g1.large", 8, 65536, 200, {"resources:CUSTOM_GPU": "1"}),
)
IMAGES = (  # name, distribution, version, GiB of disk
    ("debian-12", "debian", "12", 1),
    ("ubuntu-24.04", "ubuntu", "24.04", 5),
)
IMAGE_CONTENT = b"image".ljust(65536, b"\0")
REPORTED_WITHIN_S = 90
POLL_S = 0.3


def connect(facts, **scope):
    scope = scope or {"project_name": "admin", "project_domain_id": "default"}
    auth = {"auth_url": facts["auth_url"], "username": "admin", "password": facts["password"]}
    return _connection(facts, auth | {"user_domain_id": "default"} | scope)


def _connection(facts, auth):
    return openstack.connect(auth=auth, region_name=facts["region"], load_yaml_config=False)


def create_identities(facts):
    """Create roles, service users, the catalogue, and the domain manager that a region is given."""
    keystone = connect(facts).identity
    roles = {role.name: role for role in keystone.roles()}
    for name in ROLES:
        if name not in roles:
            roles[name] = keystone.create_role(name=name)
    for prior, implied in IMPLIED_ROLES:
        keystone.put(f"/roles/{roles[prior].id}/implies/{roles[implied].id}")
    project = keystone.create_project(name="service", domain_id="default")
    for name, service_type, url in facts["catalog"]:
        if name == "keystone":
            continue
        user = keystone.create_user(name=name, password=facts["password"], domain_id="default")
        for role in ("admin", "service"):
            keystone.assign_project_role_to_user(project, user, roles[role])
        service = keystone.create_service(name=name, type=service_type)
        for interface in ("public", "internal", "admin"):
            keystone.create_endpoint(service_id=service.id, interface=interface, url=url, region_id=facts["region"])
    domain = keystone.create_domain(name="managed", description="Projects of the region under test")
    manager = keystone.create_user(name="manager", password=facts["password"], domain_id=domain.id)
    keystone.assign_domain_role_to_user(domain, manager, roles["manager"])
    return {"domain": domain.id}


def wait_for_services(facts):
    """Wait until every service has reported since this start: a database that was there before still calls them up."""
    cloud = connect(facts)
    wanted = {("nova-compute", host) for host in facts["hosts"]}
    wanted |= {(name, None) for name in ("nova-scheduler", "nova-conductor", "cinder-volume", "cinder-scheduler")}
    deadline = time.monotonic() + REPORTED_WITHIN_S
    missing = wanted
    while time.monotonic() < deadline:
        try:
            seen = set()
            for api in (cloud.compute, cloud.block_storage):
                for service in api.services():
                    if service.state == "up" and (service.updated_at or "") > facts["started_at"]:
                        seen |= {(service.binary, service.host), (service.binary, None)}
            hosts = {provider.name for provider in cloud.placement.resource_providers()}
            missing = (wanted - seen) | {("placement", host) for host in facts["hosts"] if host not in hosts}
            if not missing:
                return {}
        except (exceptions.SDKException, OSError) as error:
            print(error, file=sys.stderr)
        time.sleep(POLL_S)
    sys.exit(f"these did not report: {sorted(map(str, missing))}")


def create_resources(facts):
    """Create flavors, images, the external network, the volume type and what Octavia needs."""
    cloud = connect(facts)
    for name, cpus, memory, disk, extra_specs in FLAVORS:
        flavor = cloud.compute.create_flavor(name=name, vcpus=cpus, ram=memory, disk=disk, is_public=True)
        if extra_specs:
            cloud.compute.create_flavor_extra_specs(flavor, extra_specs)
    for name, distribution, version, disk in IMAGES:
        properties = {
            "unikorn:os:kernel": "linux",
            "unikorn:os:family": "debian",
            "unikorn:os:distro": distribution,
            "unikorn:os:version": version,
            "unikorn:virtualization": "virtualized",
        }
        _create_image(cloud, name, visibility="public", architecture="x86_64", min_disk=disk, **properties)
    _create_image(cloud, "unlabelled", visibility="public")  # which no region offers
    external = cloud.network.create_network(
        name="public", is_router_external=True, provider_network_type="flat", provider_physical_network="public"
    )
    cloud.network.create_subnet(
        name="public",
        network_id=external.id,
        ip_version=4,
        cidr="203.0.113.0/24",
        gateway_ip="203.0.113.1",
        is_dhcp_enabled=False,
        allocation_pools=[{"start": "203.0.113.10", "end": "203.0.113.250"}],
    )
    cloud.block_storage.create_type(name="simulated", extra_specs={"volume_backend_name": "simulated"})
    return {"external_network": external.id} | _create_octavia_resources(facts, cloud)


def _create_octavia_resources(facts, cloud):
    auth = {"auth_url": facts["auth_url"], "username": "octavia", "password": facts["password"]}
    scope = {"user_domain_id": "default", "project_name": "service", "project_domain_id": "default"}
    octavia = _connection(facts, auth | scope)
    network = octavia.network.create_network(name="octavia")
    octavia.network.create_subnet(
        name="octavia", network_id=network.id, ip_version=4, cidr="192.0.2.0/24", gateway_ip=None
    )
    group = octavia.network.create_security_group(name="octavia")
    cloud.compute.create_flavor(id="amphora", name="amphora", vcpus=1, ram=1024, disk=2, is_public=False)
    _create_image(octavia, "amphora", visibility="private", tags=["amphora"])
    unlimited = dict.fromkeys(("cores", "instances", "ram"), -1)
    cloud.compute.put(f"/os-quota-sets/{octavia.current_project_id}", json={"quota_set": unlimited})
    return {"management_network": network.id, "management_group": group.id}


def _create_image(cloud, name, **properties):
    data = io.BytesIO(IMAGE_CONTENT)
    cloud.image.create_image(name=name, disk_format="raw", container_format="bare", data=data, **properties)


STEPS = {"identities": create_identities, "services": wait_for_services, "resources": create_resources}

if __name__ == "__main__":
    json.dump(STEPS[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
