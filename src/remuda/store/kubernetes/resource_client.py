"""One kind on the API server: its paths, its verbs, and what its refusals mean to us."""

from collections.abc import AsyncIterator
from typing import Any, Generic, Literal, NoReturn, TypeVar
from urllib.parse import quote

import msgspec

from remuda.kernel.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound, OutcomeUnknown, Unavailable, Unusable
from remuda.store.kinds import Kind
from remuda.store.kubernetes.client import Answer, ApiClient, Request, Verb
from remuda.store.objects import ResourceT

Policy = Literal["Foreground", "Background"]
PartT = TypeVar("PartT")

_FORBIDDEN, _NOT_FOUND, _GONE = 403, 404, 410
_STEPS = frozenset({"", ".", ".."})
"""What a path would take for something else than a name."""
_STRANGE = "What came in the API server's name is not an answer of its kind: check what lies between, and try again."


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
        self._namespace = namespace
        self._path = f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"

    async def create(self, document: bytes, name: str) -> bytes:
        """Post a new object and return what is stored."""
        answer = await self._call("create", self._path, body=document)
        if answer.status == _NOT_FOUND:
            self._refuse_place(answer)
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def get(self, name: str) -> bytes:
        """Return a stored document as the API server has it now, or raise NotFound."""
        answer = await self._call("get", self._path_of(name))
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def update(self, document: bytes, name: str) -> bytes:
        """Put metadata and spec, and return what is stored."""
        answer = await self._call("update", self._path_of(name), body=document)
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def update_status(self, document: bytes, name: str) -> bytes:
        """Put status, and return what is stored."""
        answer = await self._call("update_status", f"{self._path_of(name)}/status", body=document)
        return answer.body if answer.is_success else self._refuse(answer, name)

    async def delete(
        self, name: str, *, uid: str, version: str | None = None, policy: Policy = "Foreground"
    ) -> bytes | None:
        """Delete, the owner last; return the marked document, or None if the object is gone."""
        conditions = {"uid": uid} | ({"resourceVersion": version} if version is not None else {})
        options = {"preconditions": conditions, "propagationPolicy": policy}
        answer = await self._call("delete", self._path_of(name), body=msgspec.json.encode(options))
        if not answer.is_success:
            self._refuse(answer, name)
        return None if _read(answer.body, _Kinded).kind == "Status" else answer.body

    async def list_page(self, *, limit: int, continue_: str = "", patience_s: float | None = None) -> Listed:
        """Return a page of everything, consistent with the newest write when the first page was asked for."""
        query = {"limit": str(limit)} | ({"continue": continue_} if continue_ else {})
        answer = await self._call("list", self._path, query=query, patience_s=patience_s)
        if answer.status == _GONE:
            raise Gone(self.kind.name, continue_)
        if answer.status in {_FORBIDDEN, _NOT_FOUND}:
            self._refuse_place(answer)
        if not answer.is_success:
            self._refuse(answer, "")
        return _read(answer.body, Listed)

    async def watch(self, version: str, *, timeout_s: int, silence_s: float) -> AsyncIterator[list[Watched]]:
        """Yield what changes after a version, and bookmarks, until the server ends it."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_s),
        }
        request = Request(verb="watch", kind=self.kind.plural, path=self._path, query=query)
        async for lines in self._client.watch(request, silence_s=silence_s):
            yield [_read(line, Watched) for line in lines]

    def _path_of(self, name: str) -> str:
        if name in _STEPS or "/" in name or "%" in name:
            raise NotFound(self.kind.name, name)
        return f"{self._path}/{quote(name, safe='')}"

    async def _call(self, verb: Verb, path: str, *, patience_s: float | None = None, **parts: Any) -> Answer:
        request = Request(verb=verb, kind=self.kind.plural, path=path, **parts)
        answer = await self._client.call(request, patience_s=patience_s)
        if answer.is_success and not answer.body.startswith(b"{"):  # something answered in the server's place
            raise Unavailable(_STRANGE) if request.is_read else OutcomeUnknown(f"the {verb} of {path}")
        return answer

    def _refuse_place(self, answer: Answer) -> NoReturn:
        """Say why this kind cannot be used here at all."""
        message = answer.failure().message
        if answer.status == _FORBIDDEN:
            raise Unusable(f"The API server does not let us list {self.kind.qualified} ({message}): grant the right.")
        if message.startswith("namespaces "):
            raise Unusable(f"The namespace {self._namespace} does not exist: create it on the API server first.")
        raise Unusable(
            f"The API server does not know {self.kind.qualified}: apply the output of `remuda crds` to it first."
        )

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


def _read(text: bytes, part: type[PartT]) -> PartT:
    """Return the part we need of what the server said."""
    try:
        return msgspec.json.decode(text, type=part)
    except msgspec.MsgspecError as error:
        raise Unavailable(_STRANGE) from error
