"""A Terraform provider as users use it with the reference: the same requests, in the same order, with the same waits.

A resource is what the provider makes of one: how its configuration is sent, and what is read into its state. Terraform
itself is here, too, as far as it fails an apply: what was configured must come back as it was (`inconsistent result
after apply`), and what is known to stay must stay over an update. What an answer has besides is ignored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from remuda.kernel.clock import Clock
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply

State = Mapping[str, Any]
Service = Literal["identity", "region", "compute"]
OPERATION = "terraform.nscale.com/"
"""What the name of the tag begins with by which the provider sees that an update was taken."""
PENDING, READY = {"provisioning", "pending", "unknown"}, {"provisioned", "error"}
STAYS = frozenset({"id", "creation_time"})
"""What Terraform takes to be the same after an update of whatever resource."""
AGENT = {"user-agent": "Terraform/1.13.0 terraform-provider-nscale/1.4.0"}
_SHORTEST_S, _MAX_S = 0.1, 10.0
_MAX_LOOKS = 400
_MAX_NOT_FOUND = 20


class DiagnosticError(AssertionError):
    """What the provider shows as an error."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A sort of resource."""

    service: Service
    path: str
    create: Callable[[State], Any]
    """The body of the POST, from the configuration."""
    read: Callable[[Any], State]
    """The attributes, from what a GET answers."""
    update: Callable[[State], Any] | None = None
    """The body of the PUT; None if every change replaces it."""
    stays: frozenset[str] = STAYS
    """What Terraform takes to be the same after an update."""
    is_answered: bool = True
    """A PUT answers with the object."""
    is_retried: bool = False
    """A deletion is tried again while it is in use."""


@dataclass(frozen=True)
class Provider:
    """The provider, configured with a token for all three services."""

    clients: Mapping[Service, Client]
    clock: Clock
    paths: Mapping[str, str] = field(default_factory=dict)
    """What stands in paths, such as the organization."""

    async def create(self, resource: Resource, config: State) -> State:
        """Make it, and wait until it is there."""
        made = decoded(await self.send(resource, "POST", "", resource.create(config)))
        name = resource.read(made)["id"]
        state = resource.read(await self.until_ready(resource, name))
        check_applied(config, state)
        return state

    async def refresh(self, resource: Resource, name: str) -> State | None:
        """Read it; None if it is no longer there. An import is the same, and knows nothing but the id."""
        reply = await self.send(resource, "GET", name)
        return None if reply.status == 404 else resource.read(decoded(reply))

    async def update(self, resource: Resource, before: State, config: State) -> State:
        """Change it, and wait until the change shows."""
        assert resource.update is not None, "every change replaces it"
        tag = {"name": f"{OPERATION}{uuid4()}", "value": self.clock.now().isoformat()}
        body = resource.update(config)
        body["metadata"]["tags"] = [*body["metadata"].get("tags", ()), tag]
        reply = await self.send(resource, "PUT", before["id"], body)
        if resource.is_answered:
            resource.read(decoded(reply))
        else:
            reject(reply)
        state = resource.read(await self._until_tagged(resource, before["id"], tag))
        check_applied(config, state)
        changed = {name for name in resource.stays if state[name] != before[name]}
        if changed:
            raise DiagnosticError(f"inconsistent result after apply: {changed} was to stay")
        return state

    async def destroy(self, resource: Resource, name: str) -> None:
        """Delete it, and wait until it is gone."""
        reply = await self.send(resource, "DELETE", name)
        for _ in range(_MAX_LOOKS):
            if not (resource.is_retried and reply.status == 403 and "in use" in _said(reply).lower()):
                break
            await self.clock.sleep(0.5)
            reply = await self.send(resource, "DELETE", name)
        if reply.status != 404:
            reject(reply)
        await self._until_gone(resource, name)

    async def find(self, service: Service, path: str, name: str, query: Sequence[tuple[str, str]] = ()) -> Any:
        """Read a list, as a data source does, and pick what has this id."""
        reply = await self.clients[service].send("GET", path.format(**self.paths), query=query, headers=AGENT)
        (found,) = [each for each in decoded_list(reply) if each["metadata"]["id"] == name]
        return found

    async def all(self, resource: Resource) -> list[State]:
        """Read all of a sort."""
        return [resource.read(each) for each in decoded_list(await self.send(resource, "GET", ""))]

    async def send(self, resource: Resource, method: str, name: str, body: Any = None) -> Reply:
        """Send one request, of which all else is made."""
        path = f"{resource.path.format(**self.paths)}/{name}".rstrip("/")
        return await self.clients[resource.service].send(method, path, body=body, headers=AGENT)

    async def until_ready(self, resource: Resource, name: str) -> Any:
        """Wait until it is there, and return it as it is answered then."""
        missed = 0
        async for reply in self._looking(resource, name):
            missed = missed + 1 if reply.status == 404 else 0
            if missed > _MAX_NOT_FOUND:
                raise DiagnosticError("couldn't find resource")
            if reply.status == 404:
                continue
            found = decoded(reply)
            status = found["metadata"]["provisioningStatus"]
            if status == "error":
                raise DiagnosticError(f"{name} was created but transitioned to 'error'")
            if status in READY:
                return found
            if status not in PENDING:
                raise DiagnosticError(f"unexpected state '{status}'")
        raise DiagnosticError("timeout while waiting for the state to become 'provisioned'")

    async def _until_tagged(self, resource: Resource, name: str, tag: Mapping[str, str]) -> Any:
        async for reply in self._looking(resource, name):
            found = decoded(reply)
            if found["metadata"]["provisioningStatus"] == "error":
                raise DiagnosticError(f"{name} transitioned to 'error' during update")
            if tag in found["metadata"].get("tags", ()):
                return found
        raise DiagnosticError("timeout while waiting for the update")

    async def _until_gone(self, resource: Resource, name: str) -> None:
        async for reply in self._looking(resource, name):
            if reply.status == 404:
                return
            if decoded(reply)["metadata"]["provisioningStatus"] == "error":
                raise DiagnosticError(f"{name} transitioned to 'error' during deprovisioning")
        raise DiagnosticError("timeout while waiting for resource to be gone")

    async def _looking(self, resource: Resource, name: str) -> Any:
        pause = _SHORTEST_S
        for _ in range(_MAX_LOOKS):
            yield await self.send(resource, "GET", name)
            await self.clock.sleep(pause)
            pause = min(2 * pause, _MAX_S)


def check_applied(config: State, state: State) -> None:
    """Fail as Terraform does if what was configured has not come back as it was."""
    other = {name: (value, state[name]) for name, value in config.items() if state[name] != value}
    if other:
        raise DiagnosticError(f"inconsistent result after apply: {other}")


def reject(reply: Reply) -> None:
    """Show what is not a success as the provider does."""
    if not 200 <= reply.status < 300:
        shown = {"code": reply.json["error"], "message": _said(reply), "trace_id": reply.json["trace_id"]}
        told = ", ".join(f"{name}: {value}" for name, value in shown.items())
        raise DiagnosticError(f"server returned status code {reply.status}, {told}")


def decoded(reply: Reply) -> Any:
    """Return the object that an answer has to have."""
    reject(reply)
    found = reply.json
    assert isinstance(found, dict), found
    return found


def decoded_list(reply: Reply) -> Any:
    """Return the list that an answer has to have."""
    reject(reply)
    assert isinstance(reply.json, list), reply.json
    return reply.json


def metadata(config: State) -> dict[str, Any]:
    """Return the metadata that is sent: what is not configured is left out."""
    sent: dict[str, Any] = {"name": config["name"]}
    if config.get("description") is not None:
        sent["description"] = config["description"]
    if config.get("tags"):
        sent["tags"] = [{"name": name, "value": value} for name, value in config["tags"].items()]
    return sent


def common(read: Any) -> dict[str, Any]:
    """Return what every resource has: ids are UUIDs, and times are RFC 3339."""
    told = read["metadata"]
    tags = {tag["name"]: tag["value"] for tag in told.get("tags", ()) if not tag["name"].startswith(OPERATION)}
    return {
        "id": uuid(told["id"]),
        "name": told["name"],
        "description": told.get("description"),
        "tags": tags or None,
        "creation_time": datetime.fromisoformat(told["creationTime"]).replace(microsecond=0),
        "provisioning_status": told["provisioningStatus"],
    }


def uuid(text: str) -> str:
    """Return an id, which the provider parses."""
    return str(UUID(text))


def or_null(values: Sequence[Any] | None) -> list[Any] | None:
    """Return a list as the provider has it in its state: an empty one is null."""
    return list(values) if values else None


def _said(reply: Reply) -> str:
    return str(reply.json["error_description"])
