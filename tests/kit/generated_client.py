# mypy: ignore-errors
"""A program that uses a client generated from the document: it plans, creates, updates and deletes an instance.

The package is generated when the test runs, so that its types are not known before.

It is run as `python generated_client.py URL CREDENTIALS`, beside the generated package `remuda_client`, and prints what
it found as JSON.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from remuda_client import AuthenticatedClient
from remuda_client.api.compute_images import compute_list_images
from remuda_client.api.compute_instances import (
    compute_create_instance,
    compute_delete_instance,
    compute_get_instance,
    compute_update_instance,
)
from remuda_client.api.region_networks import region_create_network
from remuda_client.models import (
    ErrorBody,
    InstanceCreate,
    InstanceCreateSpec,
    InstanceRead,
    InstanceSpec,
    InstanceUpdate,
    MetadataWrite,
    NetworkCreate,
    NetworkCreateSpec,
    NetworkRead,
    PlanErrorBody,
    PlanRead,
)


def main(url: str, credentials: Path) -> dict[str, Any]:
    known = json.loads(credentials.read_text())
    ids = {name: UUID(known[f"{name}Id"]) for name in ("organization", "project", "region", "flavor", "image")}
    client = AuthenticatedClient(base_url=url, token=known["token"])
    network = create_network(client, ids)
    instance = create_instance(client, ids, network)
    other = other_image(client, ids)
    plan = planned(client, instance, other)
    return {
        "network": str(network.metadata.id),
        "id": str(instance.metadata.id),
        "idType": type(instance.metadata.id).__name__,
        "created": isinstance(instance.metadata.creation_time, datetime),
        "status": instance.metadata.provisioning_status.value,
        "isDestructive": plan.is_destructive,
        "steps": [step.kind.value for step in plan.steps],
        "fields": [change.field.value for step in plan.steps for change in step.changes],
        "destroyed": [lost.attribute.value for lost in plan.destroyed],
        "downtime": plan.downtime.extent.value,
        "staleCode": updated(client, instance, other, plan="0" * 32),
        "updated": updated(client, instance, other, plan=plan.hash_),
        "deleted": deleted(client, instance),
    }


def create_network(client: AuthenticatedClient, ids: dict[str, UUID]) -> NetworkRead:
    spec = NetworkCreateSpec(
        dns_nameservers=[],
        organization_id=ids["organization"],
        project_id=ids["project"],
        region_id=ids["region"],
        prefix="192.168.0.0/24",
    )
    body = NetworkCreate(metadata=MetadataWrite(name="generated"), spec=spec)
    made = region_create_network.sync(client=client, body=body)
    assert isinstance(made, NetworkRead), made
    return made


def create_instance(client: AuthenticatedClient, ids: dict[str, UUID], network: NetworkRead) -> InstanceRead:
    spec = InstanceCreateSpec(
        flavor_id=ids["flavor"],
        image_id=ids["image"],
        organization_id=ids["organization"],
        project_id=ids["project"],
        network_id=network.metadata.id,
    )
    body = InstanceCreate(metadata=MetadataWrite(name="generated"), spec=spec)
    made = compute_create_instance.sync(client=client, body=body)
    assert isinstance(made, InstanceRead), made
    return made


def other_image(client: AuthenticatedClient, ids: dict[str, UUID]) -> UUID:
    """Return an image for the same kind of server."""
    images = compute_list_images.sync(ids["organization"], ids["region"], client=client)
    assert isinstance(images, list), images
    (now,) = [image for image in images if image.metadata.id == str(ids["image"])]
    fitting = [image for image in images if image.spec.architecture == now.spec.architecture and not image.spec.gpu]
    return UUID(next(image.metadata.id for image in fitting if image.metadata.id != str(ids["image"])))


def update_of(instance: InstanceRead, image: UUID) -> InstanceUpdate:
    spec = InstanceSpec(flavor_id=instance.spec.flavor_id, image_id=image)
    return InstanceUpdate(metadata=MetadataWrite(name=instance.metadata.name), spec=spec)


def planned(client: AuthenticatedClient, instance: InstanceRead, image: UUID) -> PlanRead:
    body = update_of(instance, image)
    plan = compute_update_instance.sync(instance.metadata.id, client=client, body=body, dry_run=True)
    assert isinstance(plan, PlanRead), plan
    return plan


def updated(client: AuthenticatedClient, instance: InstanceRead, image: UUID, *, plan: str) -> str:
    """Return the image after an update, or the code of its error with the plan that it brings."""
    body = update_of(instance, image)
    found = compute_update_instance.sync(instance.metadata.id, client=client, body=body, plan=plan)
    if isinstance(found, PlanErrorBody):
        assert isinstance(found.plan, PlanRead), found
        return f"{found.code} {found.plan.is_destructive}"
    assert isinstance(found, InstanceRead), found
    return "image changed" if found.spec.image_id == image else "image is the same"


def deleted(client: AuthenticatedClient, instance: InstanceRead) -> str:
    """Delete an instance; return what a read says until it is gone."""
    compute_delete_instance.sync(instance.metadata.id, client=client)
    while isinstance(found := compute_get_instance.sync(instance.metadata.id, client=client), InstanceRead):
        assert found.metadata.deletion_time, found
    assert isinstance(found, ErrorBody), found
    return found.error.value


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
