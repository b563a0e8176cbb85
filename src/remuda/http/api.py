"""API of one service: an ASGI app that checks a request in a fixed order and calls the service.

path known (404) → method allowed (405) → path and query valid (400) → authenticated (401) → within the rate limit (429)
→ query parameters known (400) → body received (408, 413) and valid (400) → not executed before (`Idempotency-Key`) →
the service: permission (403) and semantics (404, 409, 412, 422).

So an invalid id beats a missing token, a missing token beats an invalid body, and an invalid body beats a missing
permission. Endpoints are prepared when the table is mounted. One of our errors has its own status; any other is a
defect, responded to with 500 and logged under the trace id of the response.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from collections.abc import Collection as Many
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from remuda.access.principal import ANONYMOUS, Context, Principal
from remuda.http.asgi import ClientDisconnect, Receive, Scope, Send
from remuda.http.audit import Audit, Component, FindOwner
from remuda.http.authentication import Authenticator, RequestCredentials, read_credentials
from remuda.http.buffer_shares import UNCOUNTED, BufferShares
from remuda.http.cors import Cors
from remuda.http.dispatch import PathTrie, path_of
from remuda.http.docs import DocsPages
from remuda.http.endpoints import Endpoint
from remuda.http.errors import NO_CACHE, NO_STORE
from remuda.http.failures import AuthenticationFailures, is_failed_authentication
from remuda.http.idempotency import REPLAYED, Idempotency, key_owner
from remuda.http.invocation import Invocation
from remuda.http.list_cache import ListCache
from remuda.http.lists import Lists
from remuda.http.page_reads import PageRead, page_slots
from remuda.http.pages import unknown_path
from remuda.http.proxies import CertificateProxies, ForwardingProxies
from remuda.http.ratelimit import RateLimiter, anonymous
from remuda.http.record_budget import RecordBudget
from remuda.http.request import (
    NO_HEADERS,
    InboundRequest,
    Observation,
    host_of,
    read_body,
    read_declared,
    read_header,
    read_if_match,
    read_key,
)
from remuda.http.request_slots import RequestSlots
from remuda.http.responses import Collection, Response
from remuda.http.routes import Call, Table
from remuda.http.schema import NOTHING, NamedListQuery
from remuda.http.time_limit import run_with_timeout
from remuda.http.watch import WatchPorts, watch_response
from remuda.kernel.clock import Clock
from remuda.kernel.errors import (
    NotAllowed,
    NotFound,
    OAuthError,
    RemudaError,
    ResponseNotStored,
    Unauthenticated,
)
from remuda.kernel.fair_slots import FairSlots
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.time_limits import TimeLimits
from remuda.store.logs import Log
from remuda.version import release


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """Limits of an API, and its CORS policy."""

    body_limit: int = 256 * 1024
    """Largest request body in bytes: parsing one blocks the event loop. On public routes it is at most 64 KiB."""
    body_timeout_s: float = 10.0
    time_limit_s: float = 30.0
    """Timeout of a request, except streams."""
    cors: Cors = field(default_factory=Cors)
    forwarding: ForwardingProxies = field(default_factory=ForwardingProxies)
    """Proxies whose headers about the address and the scheme of the client count."""
    certificates: CertificateProxies = field(default_factory=CertificateProxies)
    """Proxies whose headers about client certificates count."""
    url: str = ""
    """External URL of the API, for the metadata of a 401; by default that of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPorts:
    """Ports of an API."""

    authenticator: Authenticator
    clock: Clock
    randomness: Randomness
    log: Log
    sealer: Sealer
    """Seals tokens that callers return to us and must not read, such as page tokens."""
    limiter: RateLimiter
    failures: AuthenticationFailures
    idempotency: Idempotency
    watch: WatchPorts
    records: RecordBudget
    slots: RequestSlots = field(default_factory=RequestSlots)
    pages: FairSlots = field(default_factory=page_slots)
    buffers: BufferShares = field(default_factory=BufferShares)
    owners: Mapping[str, FindOwner] = field(default_factory=dict)
    """Functions that find the organization of an object for the audit, by the path parameter that names it."""
    settings: ApiSettings = field(default_factory=ApiSettings)


_LONGEST_KEPT = 4 * 1024
"""Length of the longest credentials that are kept with an idle connection."""
_OTHER_CREDENTIALS = frozenset({b"x-principal", b"x-impersonate", b"ssl-client-cert"})


def _credentials(inbound: InboundRequest, ports: ApiPorts) -> RequestCredentials:
    """Read the credentials of a request, or take those of the one before it on its connection if they are the same.

    Only a token is taken again, so it depends on nothing but its header. Whether it is valid is asked for each request.
    """
    scope, headers = inbound.scope, inbound.headers
    connection = scope.get("remuda.connection")
    if (
        connection is None
        or "extensions" in scope
        or len(headers) != len(scope["headers"])
        or not _OTHER_CREDENTIALS.isdisjoint(headers)
    ):
        return _read_credentials(inbound, ports)
    sent = headers.get(b"authorization")
    known = connection.get("credentials")
    if known is None or known[0] != sent:
        read = _read_credentials(inbound, ports).with_digest()
        if sent is not None and len(sent) > _LONGEST_KEPT:
            return read
        connection["credentials"] = known = sent, read
    credentials: RequestCredentials = known[1]
    return credentials


def _read_credentials(inbound: InboundRequest, ports: ApiPorts) -> RequestCredentials:
    """Read the credentials of a request; again for a stream, since the authorities of certificates may change."""
    peer, settings = inbound.observation.peer, ports.settings
    address = peer[0] if peer else None
    certificate = inbound.tls_certificate if "extensions" in inbound.scope else None
    if certificate and address and (address in settings.forwarding or address in settings.certificates):
        certificate = None  # it is the proxy's own
    return read_credentials(
        inbound.headers,
        all_headers=inbound.scope["headers"],
        peer=address,
        proxies=settings.certificates,
        clock=ports.clock,
        tls_certificate=certificate,
    )


def _authenticating(address: str) -> str:
    """Return the key under which requests of an address to routes that verify credentials are counted."""
    return f"credentials of {address}"


async def collection_response(
    inbound: InboundRequest,
    context: Context,
    collection: Collection[Any, Any],
    ports: ApiPorts,
    lists: Lists,
    limits: TimeLimits,
) -> Response:
    """Return a collection as its query asks: a list, a page, or a stream of changes."""
    last_event_id, principal = read_header(inbound.headers, "Last-Event-ID"), context.principal
    if isinstance(inbound.query, NamedListQuery) and inbound.query.name is not None:
        collection = collection.named(inbound.query.name)
    if inbound.query.watch:

        async def renew() -> Principal:
            if inbound.credentials is None:
                return ANONYMOUS
            return await run_with_timeout(limits, ports.authenticator.authenticate(_credentials(inbound, ports)))

        response = await watch_response(
            collection,
            last_event_id=last_event_id,
            principal=principal,
            host=host_of(inbound.observation.peer, inbound.headers, ports.settings.forwarding),
            renew=renew,
            ports=ports.watch,
        )
    else:
        response = await run_with_timeout(limits, lists.respond(inbound, principal, collection))
        if any(name == b"cache-control" for name, _ in response.headers):
            return response
    return response.with_headers(NO_STORE[0] if collection.has_secret else NO_CACHE)


_DEFECTS = 500
_PUBLIC_BODY_LIMIT = 64 * 1024


async def _audited(audit: Audit, execution: Coroutine[Any, Any, Response]) -> Response:
    """Return the response, after its audit record is stored. Public routes are audited by their services."""
    try:
        response = await execution
    except ClientDisconnect:
        raise  # the request is incomplete
    except RemudaError as error:
        await audit.finish(error.status)
        raise
    except Exception:
        await audit.finish(_DEFECTS)
        raise
    await audit.finish(response.status, replayed=REPLAYED in response.headers)
    return response


class Api:
    """The API of one service."""

    def __init__(self, table: Table, services: object, ports: ApiPorts) -> None:
        """Take the services that the routes call. Raise ValueError if one is missing or ambiguous."""
        self._component = Component(name=table.service, version=release())
        self._title = table.title
        self._ports, self._settings = ports, ports.settings
        self._limits = TimeLimits(ports.settings.time_limit_s)
        self._body_limits = TimeLimits(ports.settings.body_timeout_s)
        self._lists = Lists(
            cache=ListCache(ports.randomness),
            sealer=ports.sealer,
            slots=ports.pages,
            limiter=ports.limiter,
            buffers=ports.buffers,
            forwarding=ports.settings.forwarding,
        )
        self._tree = PathTrie(
            (route.method, route.path, Endpoint(route, services, action=table.action_of(route)))
            for route in table.routes
        )
        self._pages = DocsPages(table, self._component.version)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        observation: Observation = scope.get("remuda") or self._unobserved(scope)
        observation.service = self._component.name
        inbound = InboundRequest(scope, receive, observation)
        try:
            try:
                response = await self._respond(inbound)
            except ClientDisconnect:
                raise
            except Exception as error:  # noqa: BLE001  every failure has a response
                response = self._error_response(error, inbound)
            if scope["method"] == "HEAD":
                await response.send_head(send, inbound.extra_headers)
            else:
                await response.send(send, inbound.extra_headers, receive=receive)
        finally:
            if inbound.caller is not None:
                self._ports.slots.release(inbound.caller.caller)
            if inbound.buffered is not None:
                inbound.buffered.clear()

    async def _respond(self, inbound: InboundRequest) -> Response:
        scope = inbound.scope
        path = path_of(scope)
        match = self._tree.find(path)
        if match is None and path not in self._pages:
            inbound.extra_headers = self._ports.limiter.take(self._address(inbound))
            return self._unknown_path(path, inbound)
        inbound.extra_headers = self._settings.cors.headers(inbound.headers.get(b"origin"))
        method = scope["method"]
        if match is None:
            if method not in {"GET", "HEAD"}:
                return self._without_endpoint(inbound, {"GET"})
            inbound.extra_headers += self._ports.limiter.take(self._address(inbound))
            return self._pages.response(path, inbound.headers, mounted_at=scope.get("root_path", ""))
        endpoint = match.methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            return self._without_endpoint(inbound, match.methods)
        inbound.endpoint = endpoint
        inbound.observation.route = endpoint.route.name
        inbound.path = endpoint.bind_path(match.parameters)
        inbound.values = endpoint.normalized(match.parameters)
        inbound.query = endpoint.bind_query(scope["query_string"])
        if endpoint.is_genuine is not None:
            return await self._authenticate_in_route(inbound)
        return await self._execute_as(inbound, await self._principal(inbound))

    def _unknown_path(self, path: str, inbound: InboundRequest) -> Response:
        inbound.observation.error_code = NotFound.code
        targets = {f"{inbound.scope.get('root_path', '')}/docs": f"Documentation of {self._title}"}
        return unknown_path(path, inbound.headers, targets, trace_id=inbound.observation.trace_id)

    def _execute_as(self, inbound: InboundRequest, principal: Principal) -> Coroutine[Any, Any, Response]:
        endpoint = inbound.endpoint
        if endpoint.is_audited:
            self._ports.records.take_request(endpoint.with_payer(principal, inbound.values))
        if endpoint.is_read:
            if b"if-match" in inbound.headers:
                read_if_match(inbound.headers, is_conditional=False)
            if not endpoint.is_audited:
                return self._read(inbound, principal)
            return _audited(self._audit(inbound, principal), self._audited_read(inbound, principal))
        audit = self._audit(inbound, principal)
        writing = self._execute(inbound, principal, audit)
        return _audited(audit, writing) if endpoint.is_audited else writing

    async def _authenticate_in_route(self, inbound: InboundRequest) -> Response:
        """Execute a public route that verifies credentials. Failures count as such, and not as requests."""
        address = self._address(inbound)
        limiter, failures, who = self._ports.limiter, self._ports.failures, _authenticating(address)
        inbound.extra_headers += limiter.take(who)
        try:
            return await self._execute_as(inbound, ANONYMOUS)
        except (Unauthenticated, OAuthError) as error:
            if is_failed_authentication(error):
                limiter.refund(who)
                failures.count(address)
            raise

    async def _admit(self, inbound: InboundRequest, is_genuine: Callable[[], Awaitable[bool]]) -> None:
        """Return when the credentials of a call may be verified: at once, unless they may be forged and others were.

        Waiting costs no quota, which would be missing to genuine ones.
        """
        limiter, failures, address = self._ports.limiter, self._ports.failures, self._address(inbound)
        if not failures.is_over(address) or await is_genuine():
            return
        limiter.refund(_authenticating(address))
        await failures.admit(address, subject=inbound.claimed_subject)
        limiter.take(_authenticating(address))

    def _without_endpoint(self, inbound: InboundRequest, methods: Many[str]) -> Response:
        allowed = sorted({*methods, "OPTIONS", *(("HEAD",) if "GET" in methods else ())})
        if inbound.scope["method"] == "OPTIONS":
            return self._settings.cors.preflight(inbound.headers.get(b"access-control-request-method"), allowed)
        raise NotAllowed(allowed)

    async def _principal(self, inbound: InboundRequest) -> Principal:
        """Return the caller, after counting the request against its rate limit, or against that of its address."""
        take, failures = self._ports.limiter.take, self._ports.failures
        if inbound.endpoint.is_public:
            inbound.extra_headers += take(self._address(inbound))
            return ANONYMOUS
        authenticator, is_of_client = self._ports.authenticator, True
        try:
            credentials = _credentials(inbound, self._ports)
            is_of_client = credentials.certificate is None  # a service forwards the tokens of many clients
            if is_of_client and failures.has_any:
                address = self._address(inbound)
                if failures.is_over(address) and not await authenticator.is_genuine(credentials):
                    await failures.admit(address, subject=inbound.claimed_subject)
            principal = await run_with_timeout(self._limits, authenticator.authenticate(credentials))
        except Unauthenticated:
            if is_of_client:
                inbound.extra_headers += failures.count(self._address(inbound))
            raise
        inbound.credentials = credentials
        inbound.observation.principal = principal.actor_name
        inbound.extra_headers += take(principal.actor_name)
        self._ports.slots.take(principal.caller)
        inbound.caller = principal
        return principal

    def _address(self, inbound: InboundRequest) -> str:
        return anonymous(inbound.client(self._settings.forwarding))

    def _audit(self, inbound: InboundRequest, principal: Principal) -> Audit:
        endpoint = inbound.endpoint
        return Audit(
            self._ports.log,
            component=self._component,
            principal=principal,
            operation=endpoint.operation,
            path=dict(zip(endpoint.parameters, inbound.values, strict=True)),
            success=endpoint.route.success,
            trace_id=inbound.observation.trace_id,
            is_everywhere=endpoint.route.scope == "everywhere",
            owners=self._ports.owners,
        )

    def _check_query(self, inbound: InboundRequest, principal: Principal) -> None:
        inbound.endpoint.check_query(inbound.scope["query_string"], principal)

    def _read(self, inbound: InboundRequest, principal: Principal) -> Coroutine[Any, Any, Response]:
        """Return the execution of a read, or raise Malformed: a coroutine less than awaiting it here."""
        if inbound.scope["query_string"]:
            self._check_query(inbound, principal)
        # A read creates nothing, so its operation needs no id of its own.
        trace_id, caller = inbound.observation.trace_id, inbound.endpoint.with_payer(principal, inbound.values)
        context = Context(principal=caller, operation=trace_id, trace_id=trace_id)
        return self._handle(inbound, context, NOTHING)

    async def _audited_read(self, inbound: InboundRequest, principal: Principal) -> Response:
        return await self._read(inbound, principal)

    async def _execute(self, inbound: InboundRequest, principal: Principal, audit: Audit) -> Response:
        endpoint, settings, trace_id = inbound.endpoint, self._settings, inbound.observation.trace_id
        self._check_query(inbound, principal)
        raw = b""
        if endpoint.has_body:
            sent = inbound.scope["headers"]
            limit = min(settings.body_limit, _PUBLIC_BODY_LIMIT) if endpoint.is_public else settings.body_limit
            count = partial(inbound.count_bytes, self._ports.buffers, settings.forwarding)
            raw = await read_body(inbound.receive, sent, limit=limit, limits=self._body_limits, count=count)
        body = endpoint.read_body(raw, inbound.headers)
        audit.note_body(endpoint.named_in(body))
        if_match = read_if_match(inbound.headers, is_conditional=endpoint.route.is_conditional)
        key = read_key(inbound.headers, is_public=endpoint.is_public)
        caller = endpoint.with_payer(principal, inbound.values)
        if raw and endpoint.is_audited:
            self._ports.records.take_body(caller, len(raw))

        async def work(operation: str) -> Response:
            context = Context(
                principal=caller,
                operation=operation,
                key=key,
                trace_id=trace_id,
                if_match=if_match,
                audit=audit.record_success,
            )
            return await self._handle(inbound, context, body)

        idempotency, owner = self._ports.idempotency, key_owner(principal)
        if endpoint.route.is_idempotent:
            return await work(idempotency.operation(key, who=owner))
        keep, fingerprint = not endpoint.route.has_secret, inbound.fingerprint(raw)
        try:
            return await idempotency.execute_once(key, who=owner, fingerprint=fingerprint, keep=keep, execute=work)
        except ResponseNotStored:
            if endpoint.repeat is None:
                raise
            repeated = Context(principal=caller, operation=idempotency.operation(key, who=owner), trace_id=trace_id)
            return (await self._handle(inbound, repeated, body, endpoint.repeat)).with_headers(REPLAYED)

    async def _handle(
        self, inbound: InboundRequest, context: Context, body: Any, invoke: Invocation | None = None
    ) -> Response:
        endpoint, peer = inbound.endpoint, inbound.client(self._settings.forwarding)
        call: Call[Any, Any, Any] = Call(
            context=context,
            path=inbound.path,
            query=inbound.query,
            body=body,
            headers=read_declared(endpoint.declared, inbound.scope["headers"]) if endpoint.declared else NO_HEADERS,
            peer=peer[0] if peer else "",
        )
        if endpoint.is_genuine is not None:
            await self._admit(inbound, partial(endpoint.is_genuine, call))
        result = await run_with_timeout(self._limits, (invoke or endpoint.invoke)(call))
        if isinstance(result, PageRead):
            reading = self._lists.reading(inbound, context.principal)
            result = await run_with_timeout(self._limits, result.read(reading))
        if isinstance(result, Collection):
            response = await collection_response(inbound, context, result, self._ports, self._lists, self._limits)
        else:
            response = endpoint.render(endpoint.filtered(result, inbound.query))
        if endpoint.is_read and not (isinstance(response.body, bytes) and len(response.body) <= UNCOUNTED):
            inbound.count_response(self._ports.buffers, self._settings.forwarding, response)
        return response

    def _error_response(self, error: Exception, inbound: InboundRequest) -> Response:
        observation = inbound.observation
        observation.error_code = error.code if isinstance(error, RemudaError) else "internal"
        if not isinstance(error, RemudaError):
            structlog.get_logger().exception(
                "request failed",
                trace_id=observation.trace_id,
                service=observation.service,
                route=observation.route,
                exc_info=error,
            )
        elif error.status >= _DEFECTS:
            structlog.get_logger().error(
                "request failed",
                trace_id=observation.trace_id,
                service=observation.service,
                route=observation.route,
                cause=error.message,
            )
        return inbound.error_response(error, self._settings.url or inbound.url(self._settings.forwarding))

    def _unobserved(self, scope: Scope) -> Observation:
        """Return the observation that the access log would have set, for an API without it."""
        trace_id = self._ports.randomness.token_bytes(16).hex()
        return Observation(trace_id, self._ports.clock.monotonic(), scope.get("client"))
