"""One table, mounted: a plain ASGI callable that judges requests in the order that clients rely on.

path known (404) → method known (405) → path and query bound (400) → authenticated (401) → within its rate (429) → body
read (408, 413) and understood (400) → not done before (`Idempotency-Key`) → the handler: rights (403), semantics (404,
409, 412, 422).

So a bad id beats a missing token, a missing token beats a bad body, and a bad body beats a missing right. All of it is
one coroutine over endpoints that were prepared when the table was mounted. An error of ours is answered with its own
status; anything else is a defect, answered 500 and logged under the trace id that the caller has.
"""

from collections.abc import Collection as Many
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from remuda.access.principal import ANONYMOUS, Context, Principal
from remuda.http.audit import Audit, Component
from remuda.http.credentials import Credentials, read_credentials
from remuda.http.dispatch import SegmentTree, path_of
from remuda.http.docs import Pages
from remuda.http.endpoints import Endpoint
from remuda.http.headers import NO_HEADERS, read_declared, read_if_match, read_key
from remuda.http.idempotency import REPLAYED, holder_of
from remuda.http.limits import read_body
from remuda.http.lists.serving import answer_collection
from remuda.http.observation import Observation
from remuda.http.ports import ApiPorts
from remuda.http.ratelimit import OverLimit, anonymous
from remuda.http.replies import Collection
from remuda.http.request import Inbound
from remuda.http.responses import Answer
from remuda.http.routes import NOTHING, AnyHandler, Call
from remuda.http.tables import Table
from remuda.http.timing import within
from remuda.kernel.errors import AnswerNotKept, NotAllowed, NotFound, RemudaError, Unauthenticated
from remuda.version import release

_DEFECTS = 500


class Api:
    """Answers the requests of one service."""

    def __init__(self, table: Table, service: object, ports: ApiPorts) -> None:
        self._component = Component(name=table.service, version=release())
        self._service = service
        self._ports, self._settings = ports, ports.settings
        self._tree = SegmentTree(
            (route.method, route.path, Endpoint(route, action=table.action_of(route))) for route in table.routes
        )
        self._pages = Pages(table, self._component.version)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        seen: Observation = scope.get("remuda") or self._unobserved(scope)
        seen.service = self._component.name
        inbound = Inbound(scope, receive, seen)
        try:
            answer = await self._answer(inbound)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001  whatever it was, the caller is told that it was
            answer = self._refusal(error, inbound)
        if scope["method"] == "HEAD":
            await answer.send_head(send, inbound.more)
        else:
            await answer.send(send, inbound.more, receive=receive)

    async def _answer(self, inbound: Inbound) -> Answer:
        scope = inbound.scope
        path = path_of(scope)
        match = self._tree.find(path)
        if match is None and path not in self._pages:
            raise NotFound("path", path)
        inbound.more = self._settings.cors.headers(inbound.headers.get(b"origin"))
        method = scope["method"]
        if match is None:
            if method not in {"GET", "HEAD"}:
                return self._without_endpoint(inbound, {"GET"})
            return self._pages.answer(path, mounted_at=scope.get("root_path", ""))
        endpoint = match.methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            return self._without_endpoint(inbound, match.methods)
        inbound.endpoint = endpoint
        inbound.seen.route = endpoint.route.name
        inbound.values = match.parameters
        inbound.path = endpoint.bind_path(match.parameters)
        inbound.query = endpoint.bind_query(scope["query_string"])
        principal = await self._principal(inbound)
        if endpoint.is_read:
            if b"if-match" in inbound.headers:
                read_if_match(inbound.headers, is_conditional=False)
            # A read makes nothing that could be named after its operation.
            trace_id, placed = inbound.seen.trace_id, endpoint.place(principal, match.parameters)
            context = Context(principal=placed, operation=trace_id, trace_id=trace_id)
            return await self._handle(inbound, context, NOTHING)
        return await self._write(inbound, principal)

    def _without_endpoint(self, inbound: Inbound, methods: Many[str]) -> Answer:
        allowed = sorted({*methods, "OPTIONS", *(("HEAD",) if "GET" in methods else ())})
        if inbound.scope["method"] == "OPTIONS":
            return self._settings.cors.preflight(inbound.headers.get(b"access-control-request-method"), allowed)
        raise NotAllowed(allowed)

    async def _principal(self, inbound: Inbound) -> Principal:
        """Return who asks, after charging the request to that one, or to its address if it is nobody."""
        peer, take = inbound.seen.peer, self._ports.limiter.take
        if inbound.endpoint.is_public:
            inbound.more += take(anonymous(inbound.client(self._settings.proxies)))
            return ANONYMOUS
        try:
            credentials = read_credentials(
                inbound.headers,
                all_headers=inbound.scope["headers"],
                peer=peer[0] if peer else None,
                proxies=self._settings.proxies,
            )
            self._check_stranger(inbound, credentials)
            asked = self._ports.authenticator.authenticate(credentials)
            principal = await within(self._settings.time_limit_s, asked)
        except Unauthenticated:
            inbound.more += take(anonymous(inbound.client(self._settings.proxies)))
            raise
        inbound.credentials = credentials
        inbound.seen.principal = principal.who
        inbound.more += take(principal.who)
        return principal

    def _check_stranger(self, inbound: Inbound, credentials: Credentials) -> None:
        """Refuse who is not known at an address that has no requests left, before a signature is looked at for it."""
        try:
            self._ports.limiter.check(anonymous(inbound.client(self._settings.proxies)))
        except OverLimit:
            if not self._ports.authenticator.knows(credentials):
                raise

    async def _write(self, inbound: Inbound, principal: Principal) -> Answer:
        """Carry a write out, with a record of it. Of what strangers do, whoever lets them do it keeps the records."""
        endpoint = inbound.endpoint
        audit = Audit(
            self._ports.log,
            component=self._component,
            principal=principal,
            operation=endpoint.operation,
            path=dict(zip(endpoint.parameters, inbound.values, strict=True)),
            success=endpoint.route.success,
            trace_id=inbound.seen.trace_id,
            is_everywhere=endpoint.route.scope == "everywhere",
        )
        if endpoint.is_public:
            return await self._carry_out(inbound, principal, audit)
        try:
            answer = await self._carry_out(inbound, principal, audit)
        except ClientDisconnect:
            raise  # it never was a whole request
        except RemudaError as error:
            await audit.finish(error.status)
            raise
        except Exception:
            await audit.finish(_DEFECTS)
            raise
        await audit.finish(answer.status, replayed=REPLAYED in answer.headers)
        return answer

    async def _carry_out(self, inbound: Inbound, principal: Principal, audit: Audit) -> Answer:
        endpoint, settings, trace_id = inbound.endpoint, self._settings, inbound.seen.trace_id
        raw = b""
        if endpoint.has_body:
            sent = inbound.scope["headers"]
            raw = await read_body(inbound.receive, sent, limit=settings.body_limit, timeout_s=settings.body_timeout_s)
        body = endpoint.read_body(raw, inbound.headers)
        if_match = read_if_match(inbound.headers, is_conditional=endpoint.route.is_conditional)
        key = read_key(inbound.headers, is_public=endpoint.is_public)
        placed = endpoint.place(principal, inbound.values)

        async def work(operation: str) -> Answer:
            context = Context(
                principal=placed,
                operation=operation,
                key=key,
                trace_id=trace_id,
                if_match=if_match,
                witness=audit.witness,
            )
            return await self._handle(inbound, context, body)

        idempotency, holder = self._ports.idempotency, holder_of(principal)
        if endpoint.route.is_idempotent:
            return await work(idempotency.operation(key, who=holder))
        keep, fingerprint = not endpoint.route.holds_secret, inbound.fingerprint(raw)
        try:
            return await idempotency.once(key, who=holder, fingerprint=fingerprint, keep=keep, work=work)
        except AnswerNotKept:
            if endpoint.route.repeated is None:
                raise
            again = Context(principal=placed, operation=idempotency.operation(key, who=holder), trace_id=trace_id)
            return (await self._handle(inbound, again, body, endpoint.route.repeated)).with_headers(REPLAYED)

    async def _handle(self, inbound: Inbound, context: Context, body: Any, handler: AnyHandler | None = None) -> Answer:
        endpoint, peer = inbound.endpoint, inbound.client(self._settings.proxies)
        call: Call[Any, Any, Any] = Call(
            context=context,
            path=inbound.path,
            query=inbound.query,
            body=body,
            headers=read_declared(endpoint.declared, inbound.scope["headers"]) if endpoint.declared else NO_HEADERS,
            peer=peer[0] if peer else "",
        )
        reply = await within(self._settings.time_limit_s, (handler or endpoint.route.handler)(self._service, call))
        if isinstance(reply, Collection):
            return await answer_collection(inbound, context, reply, self._ports)
        return endpoint.answer(reply)

    def _refusal(self, error: Exception, inbound: Inbound) -> Answer:
        seen = inbound.seen
        seen.error_code = error.code if isinstance(error, RemudaError) else "internal"
        if not isinstance(error, RemudaError):
            structlog.get_logger().exception(
                "request failed", trace_id=seen.trace_id, service=seen.service, route=seen.route, exc_info=error
            )
        elif error.status >= _DEFECTS:
            structlog.get_logger().error(
                "request failed", trace_id=seen.trace_id, service=seen.service, route=seen.route, cause=error.sentence
            )
        return inbound.refusal(error, self._settings.url or inbound.url(self._settings.proxies))

    def _unobserved(self, scope: Scope) -> Observation:
        """Return what `Observe` would have put there, for an API that stands alone."""
        trace_id = self._ports.randomness.token_bytes(16).hex()
        return Observation(trace_id, self._ports.clock.monotonic(), scope.get("client"))
