"""Client of one kind on the API server: its paths, its verbs, and the meaning of its errors."""

from collections.abc import AsyncIterator
from typing import Any, Generic, Literal, NoReturn, TypeVar
from urllib.parse import quote

import msgspec

from remuda.kernel.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound, OutcomeUnknown, Unavailable, Unusable
from remuda.store.kinds import Kind
from remuda.store.kubernetes.client import ApiClient, ApiRequest, ApiResponse, Verb
from remuda.store.objects import ResourceT

Policy = Literal["Foreground", "Background"]
PartT = TypeVar("PartT")

_FORBIDDEN, _NOT_FOUND, _GONE = 403, 404, 410
_NOT_NAMES = frozenset({"", ".", ".."})
"""Path segments that are not names."""
_NOT_AN_API_SERVER = "The response did not come from an API server: check the proxies in between, and try again."


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(name="continue", default="")


class ListPage(msgspec.Struct, frozen=True):
    """A page of a list."""

    metadata: _ListMetadata
    items: list[msgspec.Raw]


class ApiWatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class ResourceApi(Generic[ResourceT]):
    """The requests of one kind in one namespace."""

    def __init__(self, kind: Kind[ResourceT], client: ApiClient, *, namespace: str) -> None:
        self.kind, self._client, self._namespace = kind, client, namespace
        self._path = f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"

    async def create(self, document: bytes, name: str) -> bytes:
        response = await self._call("create", self._path, body=document)
        if response.status == _NOT_FOUND:
            self._raise_unusable(response)
        return response.body if response.is_success else self._raise_error(response, name)

    async def get(self, name: str) -> bytes:
        response = await self._call("get", self._path_of(name))
        return response.body if response.is_success else self._raise_error(response, name)

    async def update(self, document: bytes, name: str) -> bytes:
        response = await self._call("update", self._path_of(name), body=document)
        return response.body if response.is_success else self._raise_error(response, name)

    async def update_status(self, document: bytes, name: str) -> bytes:
        response = await self._call("update_status", f"{self._path_of(name)}/status", body=document)
        return response.body if response.is_success else self._raise_error(response, name)

    async def delete(
        self, name: str, *, uid: str, version: str | None = None, policy: Policy = "Foreground"
    ) -> bytes | None:
        """Delete, the owner last; return the document that is being deleted, or None if it was removed."""
        conditions = {"uid": uid} | ({"resourceVersion": version} if version is not None else {})
        options = {"preconditions": conditions, "propagationPolicy": policy}
        response = await self._call("delete", self._path_of(name), body=msgspec.json.encode(options))
        if not response.is_success:
            self._raise_error(response, name)
        return None if _read(response.body, _Kinded).kind == "Status" else response.body

    async def list_page(self, *, limit: int, continue_: str = "", retry_for_s: float | None = None) -> ListPage:
        """Return a page of all objects, consistent with the newest write when the first page was requested."""
        query = {"limit": str(limit)} | ({"continue": continue_} if continue_ else {})
        response = await self._call("list", self._path, query=query, retry_for_s=retry_for_s)
        if response.status == _GONE:
            raise Gone(self.kind.name, continue_)
        if response.status in {_FORBIDDEN, _NOT_FOUND}:
            self._raise_unusable(response)
        if not response.is_success:
            self._raise_error(response, "")
        return _read(response.body, ListPage)

    async def watch(self, version: str, *, timeout_s: int, silence_s: float) -> AsyncIterator[list[ApiWatchEvent]]:
        """Yield the changes after a version, and bookmarks, until the server ends the watch."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_s),
        }
        request = ApiRequest(verb="watch", kind=self.kind.plural, path=self._path, query=query)
        async for lines in self._client.watch(request, silence_s=silence_s):
            yield [_read(line, ApiWatchEvent) for line in lines]

    def _path_of(self, name: str) -> str:
        if name in _NOT_NAMES or "/" in name or "%" in name:
            raise NotFound(self.kind.name, name)
        return f"{self._path}/{quote(name, safe='')}"

    async def _call(self, verb: Verb, path: str, *, retry_for_s: float | None = None, **parts: Any) -> ApiResponse:
        request = ApiRequest(verb=verb, kind=self.kind.plural, path=path, **parts)
        response = await self._client.call(request, retry_for_s=retry_for_s)
        if response.is_success and not response.body.startswith(b"{"):  # a proxy responded instead of the server
            raise Unavailable(_NOT_AN_API_SERVER) if request.is_read else OutcomeUnknown(f"the {verb} of {path}")
        return response

    def _raise_unusable(self, response: ApiResponse) -> NoReturn:
        """Raise the reason why this kind cannot be used in this namespace at all."""
        message = response.failure().message
        if response.status == _FORBIDDEN:
            raise Unusable(f"The API server forbids listing {self.kind.qualified} ({message}): grant the permission.")
        if message.startswith("namespaces "):
            raise Unusable(f"The namespace {self._namespace} does not exist: create it on the API server first.")
        raise Unusable(
            f"The API server does not know {self.kind.qualified}: apply the output of `remuda crds` to it first."
        )

    def _raise_error(self, response: ApiResponse, name: str) -> NoReturn:
        failure = response.failure()
        if failure.reason == "AlreadyExists":
            raise AlreadyExists(self.kind.name, name)
        if failure.reason == "Conflict":
            raise Conflict(self.kind.name, name)
        if failure.reason == "NotFound":
            raise NotFound(self.kind.name, name)
        if failure.reason in {"Invalid", "BadRequest", "RequestEntityTooLarge"}:
            raise Invalid(
                f"the {self.kind.name} {name}", "was rejected", remedy=f"the API server says: {failure.message}"
            )
        raise Unavailable(
            f"The API server rejects the request: {failure.message}. Check its permissions and its admission policies."
        )


class _Kinded(msgspec.Struct, frozen=True):
    kind: str = ""


def _read(text: bytes, part: type[PartT]) -> PartT:
    try:
        return msgspec.json.decode(text, type=part)
    except msgspec.MsgspecError as error:
        raise Unavailable(_NOT_AN_API_SERVER) from error
