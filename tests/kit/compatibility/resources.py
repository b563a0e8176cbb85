"""The provider's resources: what it sends of each, and what it reads."""

import base64
from typing import Any

from tests.kit.compatibility.provider import STAYS, Resource, State, common, metadata, or_null, uuid


def _given(**fields: Any) -> dict[str, Any]:
    """Return fields without those that are not configured."""
    return {name: value for name, value in fields.items() if value is not None}


def _routes(config: State) -> Any:
    routes = config.get("routes")
    return None if routes is None else [{"prefix": each[0], "nexthop": each[1]} for each in routes]


def _network_spec(config: State) -> dict[str, Any]:
    return _given(dnsNameservers=config.get("dns_nameservers") or [], routes=_routes(config))


def _create_network(config: State) -> Any:
    where = {"organizationId": config["organization"], "projectId": config["project_id"]}
    spec = {**_network_spec(config), **where, "regionId": config["region_id"], "prefix": config["cidr_block"]}
    return {"metadata": metadata(config), "spec": spec}


def _read_network(read: Any) -> State:
    routes = read["spec"].get("routes")
    return {
        **common(read),
        "organization": uuid(read["metadata"]["organizationId"]),
        "project_id": uuid(read["metadata"]["projectId"]),
        "region_id": uuid(read["status"]["regionId"]),
        "cidr_block": read["status"]["prefix"],
        "dns_nameservers": or_null(read["spec"]["dnsNameservers"]),
        "routes": None if routes is None else [(each["prefix"], each["nexthop"]) for each in routes],
    }


NETWORK = Resource(
    service="region",
    path="/api/v2/networks",
    create=_create_network,
    update=lambda config: {"metadata": metadata(config), "spec": _network_spec(config)},
    read=_read_network,
)

_RULE = {
    "type": "direction",
    "protocol": "protocol",
    "from_port": "port",
    "to_port": "portMax",
    "cidr_block": "prefix",
}


def _rules(config: State) -> Any:
    return [{_RULE[name]: value for name, value in rule.items()} for rule in config["rules"]]


def _read_rule(rule: Any) -> State:
    return {name: rule[wire] for name, wire in _RULE.items() if wire in rule}


SECURITY_GROUP = Resource(
    service="region",
    path="/api/v2/securitygroups",
    create=lambda config: {
        "metadata": metadata(config),
        "spec": {"networkId": config["network_id"], "rules": _rules(config)},
    },
    update=lambda config: {"metadata": metadata(config), "spec": {"rules": _rules(config)}},
    read=lambda read: {
        **common(read),
        "project_id": uuid(read["metadata"]["projectId"]),
        "network_id": uuid(read["status"]["networkId"]),
        "region_id": uuid(read["status"]["regionId"]),
        "rules": [_read_rule(rule) for rule in read["spec"]["rules"]],
    },
    is_retried=True,
)

SSH_AUTHORITY = Resource(
    service="region",
    path="/api/v2/sshcertificateauthorities",
    create=lambda config: {
        "metadata": metadata(config),
        "spec": {
            "organizationId": config["organization"],
            "projectId": config["project_id"],
            "publicKey": config["public_key"].strip(),
        },
    },
    read=lambda read: {
        **common(read),
        "organization": uuid(read["metadata"]["organizationId"]),
        "project_id": uuid(read["metadata"]["projectId"]),
        "public_key": read["spec"]["publicKey"].strip(),
    },
)


def _instance_spec(config: State) -> dict[str, Any]:
    data = config.get("user_data")
    networking = _given(publicIP=config.get("enable_public_ip")) | {
        "securityGroups": config.get("security_group_ids") or [],
        "allowedSourceAddresses": config.get("allowed_destinations") or [],
    }
    return _given(
        flavorId=config["flavor_id"],
        imageId=config["image_id"],
        sshCertificateAuthorityId=config.get("ssh_certificate_authority_id"),
        userData=None if data is None else base64.b64encode(data.encode()).decode(),
        networking=networking,
    )


def _create_instance(config: State) -> Any:
    where = {"organizationId": config["organization"], "projectId": config["project_id"]}
    return {
        "metadata": metadata(config),
        "spec": {**_instance_spec(config), **where, "networkId": config["network_id"]},
    }


def _read_instance(read: Any) -> State:
    spec, status = read["spec"], read["status"]
    networking, data = spec["networking"], spec.get("userData")  # it crashes where that is missing
    return {
        **common(read),
        "organization": uuid(read["metadata"]["organizationId"]),
        "project_id": uuid(read["metadata"]["projectId"]),
        "flavor_id": spec["flavorId"],
        "image_id": spec["imageId"],
        "ssh_certificate_authority_id": spec.get("sshCertificateAuthorityId"),
        "user_data": None if data is None else base64.b64decode(data, validate=True).decode(),
        "enable_public_ip": networking.get("publicIP"),
        "security_group_ids": or_null(networking.get("securityGroups")),
        "allowed_destinations": or_null(networking.get("allowedSourceAddresses")),
        "network_id": uuid(status["networkId"]),
        "region_id": uuid(status["regionId"]),
        "public_ip": status.get("publicIP"),
        "private_ip": status.get("privateIP"),
        "power_state": status.get("powerState"),
    }


INSTANCE = Resource(
    service="compute",
    path="/api/v2/instances",
    create=_create_instance,
    update=lambda config: {"metadata": metadata(config), "spec": _instance_spec(config)},
    read=_read_instance,
    stays=STAYS | {"private_ip", "region_id"},
)


def _storage_spec(config: State) -> dict[str, Any]:
    return _given(
        sizeGiB=config["capacity"],
        storageType={"NFS": {"rootSquash": config["root_squash"]}},
        attachments={"networkIds": config.get("networks") or []},
        defaultSnapshotProtectionEnabled=config.get("snapshot_protection"),
        snapshotPolicies=config.get("snapshot_policies"),
    )


def _create_storage(config: State) -> Any:
    where = {"organizationId": config["organization"], "projectId": config["project_id"]}
    chosen = {"regionId": config["region_id"], "storageClassId": config["storage_class_id"]}
    return {"metadata": metadata(config), "spec": {**_storage_spec(config), **where, **chosen}}


def _read_storage(read: Any) -> State:
    spec, status = read["spec"], read["status"]
    attachments = status.get("attachments") or []
    return {
        **common(read),
        "organization": uuid(read["metadata"]["organizationId"]),
        "project_id": uuid(read["metadata"]["projectId"]),
        "region_id": uuid(status["regionId"]),
        "storage_class_id": status["storageClassId"],
        "capacity": spec["sizeGiB"],
        "root_squash": spec["storageType"]["NFS"]["rootSquash"],
        "networks": or_null([uuid(each["networkId"]) for each in attachments]),
        "mount_sources": [each.get("mountSource") for each in attachments],
        "snapshot_protection": spec["defaultSnapshotProtectionEnabled"],
        "snapshot_policies": spec.get("snapshotPolicies"),
        "size": status.get("usage", {}).get("usedBytes", 0) >> 30,
    }


FILE_STORAGE = Resource(
    service="region",
    path="/api/v2/filestorage",
    create=_create_storage,
    update=lambda config: {"metadata": metadata(config), "spec": _storage_spec(config)},
    read=_read_storage,
    stays=STAYS | {"region_id", "storage_class_id"},
)


def _project(config: State) -> Any:
    return {"metadata": metadata(config), "spec": {"groupIDs": config["group_ids"]}}


def _group(config: State) -> Any:
    spec = {"roleIDs": config["role_ids"], "serviceAccountIDs": config["service_account_ids"]}
    return {"metadata": metadata(config), "spec": spec | _given(userIDs=config.get("user_ids"))}


PROJECT = Resource(
    service="identity",
    path="/api/v1/organizations/{organization}/projects",
    create=_project,
    update=_project,
    read=lambda read: {**common(read), "group_ids": list(read["spec"]["groupIDs"])},
    stays=STAYS | {"provisioning_status"},
    is_answered=False,
)
GROUP = Resource(
    service="identity",
    path="/api/v1/organizations/{organization}/groups",
    create=_group,
    update=_group,
    read=lambda read: {
        **common(read),
        "role_ids": list(read["spec"]["roleIDs"]),
        "service_account_ids": list(read["spec"]["serviceAccountIDs"]),
        "user_ids": read["spec"].get("userIDs"),
    },
    stays=STAYS | {"provisioning_status"},
    is_answered=False,
)
