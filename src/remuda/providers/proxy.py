"""Proxy of a provider: the same capabilities, every call of which goes through one `providers.calls.Calls`.

`CALLS` has one rule for each method of each capability.

**Keys.** The key of a call is the name of what the call is about: of a handle, a tenancy or an image (`image_key`).
A server and its port have different keys: two calls about them do no harm in either order, because a provider rejects
the removal of a port with a server and a second server at a port.

**Reads** are safe calls, and so is each part of a listing. Only the first part is retried: an iterator that has failed
has ended, and continuing it would make the missing parts look absent.

**Errors** and results pass unchanged. Events are not a call: the subscription never ends, so it passes unchanged.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

from remuda.providers.calls import Calls
from remuda.providers.contract.catalogue import CloudImageSpec
from remuda.providers.contract.common import Handle
from remuda.providers.contract.filestorage import CloudFileStorageSpec
from remuda.providers.contract.loadbalancers import CloudLoadBalancerSpec
from remuda.providers.contract.networks import CloudNetworkSpec, CloudSecurityGroup, Tenancy
from remuda.providers.contract.provider import Provider
from remuda.providers.contract.servers import CloudPortSpec, CloudServerSpec

Spec: TypeAlias = (
    CloudNetworkSpec
    | CloudSecurityGroup
    | CloudPortSpec
    | CloudServerSpec
    | CloudLoadBalancerSpec
    | CloudFileStorageSpec
)
Part: TypeAlias = Sequence[object]
Key: TypeAlias = Callable[..., str]
"""The key of a call, from its arguments. A parameter has the name that the method gives it."""

UPLOAD_S = 3600.0
"""The deadline for uploading an image, which takes far longer than any other call."""


def image_key(image: str) -> str:
    return f"image-{image}"


def _everything() -> str:
    """Return the key of reads that are about no single thing."""
    return "everything"


def _handle(handle: Handle, *_: object, **__: object) -> str:
    return handle.name


def _spec(desired: Spec) -> str:
    return desired.handle.name


def _tenancy(desired: Tenancy) -> str:
    return desired.name


def _tenancy_name(name: str) -> str:
    return name


def _new_image(desired: CloudImageSpec, content: object) -> str:  # noqa: ARG001  a key takes all arguments of its call
    return image_key(desired.id)


def _snapshot(handle: Handle, desired: CloudImageSpec) -> str:  # noqa: ARG001  only the image could be created twice
    return image_key(desired.id)


@dataclass(frozen=True, slots=True)
class _Call:
    """A method that is one call."""

    method: str
    key: Key
    deadline_s: float | None = None
    is_safe: ClassVar[bool]

    def bind(self, capability: object, calls: Calls) -> Callable[..., Awaitable[object]]:
        async def call(*given: Any, **named: Any) -> object:
            key, request = self.key(*given, **named), partial(getattr(capability, self.method), *given, **named)
            return await calls.call(key, self.method, request, deadline_s=self.deadline_s, safe=self.is_safe)

        return call


@dataclass(frozen=True, slots=True)
class Write(_Call):
    """A method that changes something at the provider."""

    is_safe: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Read(_Call):
    """A method that changes nothing at the provider."""

    key: Key = _everything
    is_safe: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Listing:
    """A method that yields parts. Each part is a call, so that no slot is held between two parts."""

    method: str

    def bind(self, capability: object, calls: Calls) -> Callable[[], AsyncGenerator[Part, None]]:
        return lambda: _listed(calls, self.method, getattr(capability, self.method))


Rule: TypeAlias = Write | Read | Listing


def _managed(noun: str, *, spec: Key = _spec, name: Key = _handle) -> tuple[Rule, ...]:
    """Return the rules of what is created or updated by a spec, and found and removed by its name."""
    return Write(f"converge_{noun}", spec), Read(f"find_{noun}", name), Write(f"remove_{noun}", name)


CALLS: Mapping[str, tuple[Rule, ...]] = {
    "catalogue": (Read("flavors"),),
    "external_networks": (Read("external_networks"),),
    "images": (
        Read("images"),
        Read("find_image", image_key),
        Write("create_image", _new_image, deadline_s=UPLOAD_S),
        Write("remove_image", image_key),
    ),
    "tenancies": (*_managed("tenancy", spec=_tenancy, name=_tenancy_name), Listing("tenancies")),
    "networks": (*_managed("network"), Listing("networks")),
    "security_groups": (*_managed("group"), Listing("groups")),
    "ports": (*_managed("port"), Listing("ports")),
    "servers": (
        Write("create_server", _spec),
        Read("find_server", _handle),
        Write("remove_server", _handle),
        Write("start_server", _handle),
        Write("stop_server", _handle),
        Write("reboot_server", _handle),
        Write("rebuild_server", _handle),
        Listing("server_versions"),
    ),
    "consoles": (Read("open_console", _handle), Read("console_output", _handle)),
    "snapshots": (Write("snapshot_server", _snapshot),),
    "load_balancers": (*_managed("balancer"), Listing("balancers")),
    "file_storages": (Read("storage_classes"), *_managed("storage"), Listing("storages")),
    "events": (),
}
"""The rules of each capability, by its name in `Provider`."""


class CapabilityProxy:
    """One capability of a provider, with the methods that its rules name.

    They are created from the rules. Their signatures are in the Protocol of the capability, in `providers.contract`.
    """

    def __init__(self, capability: object, rules: Sequence[Rule], calls: Calls) -> None:
        for rule in rules:
            setattr(self, rule.method, rule.bind(capability, calls))


def methods_of(provider: Provider) -> tuple[str, ...]:
    """Return the methods of a provider's capabilities, which its `Calls` has to be declared with."""
    return tuple(rule.method for name in provider.capabilities for rule in CALLS[name])


def proxied(provider: Provider, calls: Calls) -> Provider:
    """Return a provider with the same capabilities, every call of which goes through `calls`."""
    # By name, so that a capability without rules is an error. The test of CALLS compares it with the Protocols.
    proxies: dict[str, Any] = {
        name: CapabilityProxy(getattr(provider, name), CALLS[name], calls)
        for name in provider.capabilities
        if CALLS[name]
    }
    return replace(provider, **proxies)


async def _listed(calls: Calls, method: str, begin: Callable[[], AsyncIterator[Part]]) -> AsyncGenerator[Part, None]:
    """Yield the parts of a listing. Raises as soon as a part is missing; the next listing starts over."""
    parts = begin()

    async def first() -> Part | None:
        nonlocal parts
        parts = begin()
        return await anext(parts, None)

    async def next_part() -> Part | None:
        return await anext(parts, None)

    try:
        part = await calls.call(_everything(), method, first, safe=True)
        while part is not None:
            yield part
            part = await calls.call(_everything(), method, next_part, safe=True, once=True)
    finally:
        await _close(parts)


async def _close(parts: AsyncIterator[Part]) -> None:
    if isinstance(parts, AsyncGenerator):
        with suppress(RuntimeError):  # a part that is late is still running, and ends by itself
            await parts.aclose()
