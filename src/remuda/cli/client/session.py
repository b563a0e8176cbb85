"""Asking the services of a Remuda: every request with the token of a context, which is renewed when it has ended.

What a service refuses is raised as the error that it told, in its own sentence. A write carries a key, so that it is
done once however often it has to be sent.

Following a list as it changes, also over streams that end: each is taken up where the last one was left.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self

import httpx2
import msgspec

from remuda.cli.client.contexts import Context, Contexts, ContextsFile
from remuda.cli.client.oauth import end, reach, renewed
from remuda.cli.client.transport import connected, pause, refusal
from remuda.http.remote_errors import error_from
from remuda.http.sse import EventReader
from remuda.kernel.errors import Gone, InFlight, RemudaError, ServerUnreachable, Unauthenticated, Unavailable, Unusable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness

Service = Literal["identity", "region", "compute"]
"""A service, as contexts name it."""
Query = Mapping[str, str | Sequence[str] | None]
"""What follows the question mark; what is None is left out."""

_PAUSES_S = (0.2, 1.0)
"""How long to wait before a request is sent again."""
_NOT_AUTHENTICATED = 401
_NOT_NOW = {429, 502, 503, 504}
_PAGE = "500"


class Session:
    """One command's requests. Use it as a context manager."""

    def __init__(
        self, name: str, context: Context, file: ContextsFile, *, sleep: Callable[[float], None] = pause
    ) -> None:
        self.name, self.context = name, context
        self._file, self._sleep = file, sleep
        self._http = connected(context.endpoints.values())

    def __enter__(self) -> Self:
        """Use it until the end of the block."""
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self._http.close()

    def get(self, service: Service, path: str, query: Query | None = None) -> Any:
        """Return what is at a path."""
        return self.ask("GET", service, path, query=query)

    def get_all(self, service: Service, path: str, query: Query | None = None) -> list[Any]:
        """Return a whole list, read in pages."""
        found: list[Any] = []
        asked = {**(query or {}), "limit": _PAGE}
        while True:
            answer = self._answered("GET", service, path, asked)
            found += _value(answer)
            if "x-continue" not in answer.headers:
                return found
            asked["continue"] = answer.headers["x-continue"]

    def read(self, service: Service, path: str) -> tuple[Any, str]:
        """Return what is at a path, and what tells its present state from every other."""
        answer = self._answered("GET", service, path)
        return _value(answer), answer.headers.get("etag", "")

    def ask(
        self,
        method: str,
        service: Service,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        match: str = "",
    ) -> Any:
        """Send a request and return its answer, None if that is empty. With `match` only if that is still its state."""
        answer = self._answered(method, service, path, query, body, match)
        return _value(answer) if answer.content else None

    @contextmanager
    def stream(self, service: Service, path: str, query: Query, after: str = "") -> Iterator[Iterator[bytes]]:
        """Open a stream of server-sent events, and give its bytes as they come."""
        url, headers = self._url(service, path), {"Accept": "text/event-stream"}
        if after:
            headers["Last-Event-ID"] = after
        try:
            with self._opened(url, query, headers) as answer:
                if not answer.is_success:
                    answer.read()
                    raise self._refusal(answer, url)
                yield answer.iter_bytes()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise reach(url, error) from None

    def end(self) -> None:
        """Have this login be good for nothing from now on, if it is one that ends."""
        if self.context.tokens.refresh is not None:
            end(self._http, self.context.endpoints["identity"], self.context.tokens.refresh)

    @contextmanager
    def _opened(self, url: str, query: Query, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
        asked = _given(query)
        with self._http.stream("GET", url, params=asked, headers=self._authorized(headers)) as answer:
            if not self._is_over(answer):
                yield answer
                return
        self._renew()
        with self._http.stream("GET", url, params=asked, headers=self._authorized(headers)) as answer:
            yield answer

    def _answered(
        self, method: str, service: Service, path: str, query: Query | None = None, body: Any = None, match: str = ""
    ) -> httpx2.Response:
        url, headers = self._url(service, path), {"If-Match": match} if match else {}
        if method != "GET":
            headers["Idempotency-Key"] = random_id(SystemRandomness())
        if body is not None:
            headers["Content-Type"] = "application/json"
        content = None if body is None else msgspec.json.encode(body)
        answer = self._sent(method, url, query, content, headers)
        if self._is_over(answer):
            self._renew()
            answer = self._sent(method, url, query, content, headers)
        if not answer.is_success:
            raise self._refusal(answer, url)
        return answer

    def _sent(
        self, method: str, url: str, query: Query | None, content: bytes | None, headers: Mapping[str, str]
    ) -> httpx2.Response:
        """Send a request, and again if it went astray: its key makes sure that it is done once."""
        asked: dict[str, Any] = {"params": _given(query or {}), "content": content}
        for pause_s in _PAUSES_S:
            try:
                answer = self._http.request(method, url, headers=self._authorized(headers), **asked)
            except (httpx2.ConnectError, httpx2.InvalidURL) as error:
                raise reach(url, error) from None
            except httpx2.HTTPError:
                self._sleep(pause_s)
                continue
            if not _is_for_later(answer, url):
                return answer
            self._sleep(pause_s)
        try:
            return self._http.request(method, url, headers=self._authorized(headers), **asked)
        except httpx2.HTTPError as error:
            raise reach(url, error) from None

    def _refusal(self, answer: httpx2.Response, url: str) -> RemudaError:
        error = refusal(answer, url)
        return self._ended() if isinstance(error, Unauthenticated) else error

    def _is_over(self, answer: httpx2.Response) -> bool:
        return answer.status_code == _NOT_AUTHENTICATED and self.context.tokens.refresh is not None

    def _renew(self) -> None:
        """Use the next tokens. One command renews at a time: a refresh token is good once, and others wait for it."""
        self.context = self._file.change(self._renewed).contexts[self.name]

    def _renewed(self, contexts: Contexts) -> Contexts:
        known = contexts.contexts.get(self.name)
        if known is None or known.tokens.refresh is None:
            raise self._ended()
        if known.tokens.access.reveal() != self.context.tokens.access.reveal():
            return contexts  # another command was first
        try:
            tokens = renewed(self._http, known.endpoints["identity"], known.tokens.refresh)
        except Unauthenticated:
            raise self._ended() from None
        return contexts.with_(self.name, msgspec.structs.replace(known, tokens=tokens))

    def _ended(self) -> Unauthenticated:
        return Unauthenticated(f"You are no longer logged in (context {self.name}): log in again with remuda login.")

    def _authorized(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        return {**headers, "Authorization": f"Bearer {self.context.tokens.access.reveal()}"}

    def _url(self, service: Service, path: str) -> str:
        if service not in self.context.endpoints:
            raise Unusable(f"{self.name} does not say where the service {service} is: say remuda login again.")
        return self.context.endpoints[service].rstrip("/") + path


def _value(answer: httpx2.Response) -> Any:
    try:
        return msgspec.json.decode(answer.content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnreachable(str(answer.url.copy_with(query=None)), "its answer is no JSON") from None


def _is_for_later(answer: httpx2.Response, url: str) -> bool:
    if answer.is_success:
        return False
    is_in_flight = isinstance(error_from(answer.status_code, answer.headers, answer.content, server=url), InFlight)
    return is_in_flight or answer.status_code in _NOT_NOW


def _given(query: Query) -> dict[str, str | Sequence[str]]:
    return {name: value for name, value in query.items() if value is not None}


_PAUSE_S = 1.0


def changes(session: Session, service: Service, path: str, query: Query) -> Iterator[tuple[str, Any]]:
    """Yield what is there, each as added, and then each change, for as long as somebody listens."""
    place = ""
    while True:
        try:
            with session.stream(service, path, {**query, "watch": "true"}, place) as chunks:
                reader = EventReader()
                for chunk in chunks:
                    for event in reader.feed(chunk):
                        place = place if event.id is None else event.id
                        if event.type in {"added", "modified", "deleted"}:
                            yield event.type, msgspec.json.decode(event.data)
        except Gone:
            place = ""
        except Unavailable:
            if not place:
                raise
        pause(_PAUSE_S)
