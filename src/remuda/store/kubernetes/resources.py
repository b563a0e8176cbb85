"""One kind on the API server: its paths, its verbs, and what its refusals mean to us."""

from collections.abc import AsyncIterator
from typing import Any, Generic, Literal, NoReturn

import msgspec

from remuda.kernel.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound, Unavailable, Unusable
from remuda.store.kinds import Kind
from remuda.store.kubernetes.client import Answer, ApiClient, Request, Verb
from remuda.store.objects import ResourceT

__all__ = ["Listed", "ResourceApi", "Watched"]

Policy = Literal["Foreground", "Background"]

_GONE = 410
_NOT_FOUND = 404


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(name="continue", default="")


class Listed(msgspec.Struct, frozen=True):
    """A page of a list."""

    metadata: _ListMetadata
    items: list[msgspec.Raw]


class Watched(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class ResourceApi(Generic[ResourceT]):
    """The requests of one kind in one namespace."""

    def __init__(self, kind: Kind[ResourceT], client: ApiClient, *, namespace: str) -> None:
        self.kind = kind
        self._client = client
        self._path = f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"

    async def create(self, document: bytes, name: str) -> bytes:
        """Post a new object and return what is stored."""
        answer = await self._call("create", self._path, body=document)
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def get(self, name: str) -> bytes:
        """Return a stored document as the API server has it now, or raise NotFound."""
        answer = await self._call("get", f"{self._path}/{name}")
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def update(self, document: bytes, name: str) -> bytes:
        """Put metadata and spec, and return what is stored."""
        answer = await self._call("update", f"{self._path}/{name}", body=document)
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def update_status(self, document: bytes, name: str) -> bytes:
        """Put status, and return what is stored."""
        answer = await self._call("update_status", f"{self._path}/{name}/status", body=document)
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def delete(
        self, name: str, *, uid: str, version: str | None = None, policy: Policy = "Foreground"
    ) -> bytes | None:
        """Delete, the owner last; return the marked document, or None if the object is gone."""
        conditions = {"uid": uid} | ({"resourceVersion": version} if version is not None else {})
        options = {"preconditions": conditions, "propagationPolicy": policy}
        answer = await self._call("delete", f"{self._path}/{name}", body=msgspec.json.encode(options))
        if not answer.is_success:
            self._refuse(answer, name)
        return None if msgspec.json.decode(answer.body, type=_Kinded).kind == "Status" else answer.body

    async def list_page(self, *, limit: int, continue_: str = "") -> Listed:
        """Return a page of everything, consistent with the newest write when the first page was asked for."""
        query = {"limit": str(limit)} | ({"continue": continue_} if continue_ else {})
        answer = await self._call("list", self._path, query=query)
        if answer.status == _GONE:
            raise Gone(self.kind.name, continue_)
        if answer.status == _NOT_FOUND:
            raise Unusable(
                f"The API server does not know {self.kind.qualified}: apply the output of `remuda crds` to it first."
            )
        if not answer.is_success:
            self._refuse(answer, "")
        return msgspec.json.decode(answer.body, type=Listed)

    async def watch(self, version: str, *, timeout_s: int) -> AsyncIterator[list[Watched]]:
        """Yield what changes after a version, and bookmarks, until the server ends it."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_s),
        }
        request = Request(verb="watch", kind=self.kind.plural, path=self._path, query=query)
        decoder = msgspec.json.Decoder(Watched)
        async for lines in self._client.watch(request, silence_s=timeout_s + 30):
            yield [decoder.decode(line) for line in lines]

    async def _call(self, verb: Verb, path: str, **parts: Any) -> Answer:
        return await self._client.call(Request(verb=verb, kind=self.kind.plural, path=path, **parts))

    def _refuse(self, answer: Answer, name: str) -> NoReturn:
        failure = answer.failure()
        if failure.reason == "AlreadyExists":
            raise AlreadyExists(self.kind.name, name)
        if failure.reason == "Conflict":
            raise Conflict(self.kind.name, name)
        if failure.reason == "NotFound":
            raise NotFound(self.kind.name, name)
        if failure.reason in {"Invalid", "BadRequest", "RequestEntityTooLarge"}:
            raise Invalid(
                f"the {self.kind.name} {name}", "was refused", remedy=f"the API server says: {failure.message}"
            )
        raise Unavailable(f"The API server refuses us: {failure.message}. Check its rights and its admission policies.")


class _Kinded(msgspec.Struct, frozen=True):
    kind: str = ""
