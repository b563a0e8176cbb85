"""A collection that a handler returned, answered as its query says: as a list, as a page, or as a stream."""

from typing import Any

from remuda.access.principal import ANONYMOUS, Context, Principal
from remuda.http.dispatch import whole_path_of
from remuda.http.errors import NO_CACHE
from remuda.http.headers import read_header
from remuda.http.lists.places import Places
from remuda.http.lists.tokens import PageTokens
from remuda.http.pagination import answer_list
from remuda.http.ports import ApiPorts
from remuda.http.replies import Collection
from remuda.http.request import Inbound
from remuda.http.responses import Answer
from remuda.http.timing import within
from remuda.http.watch import answer_watch


async def answer_collection(
    inbound: Inbound, context: Context, collection: Collection[Any, Any], ports: ApiPorts
) -> Answer:
    """Answer with what there is, within the time that a request has, or with what happens, for as long as it does."""
    last_event_id = read_header(inbound.headers, "Last-Event-ID")
    if inbound.query.watch:
        answer = await _watch(inbound, context.principal, collection, last_event_id, ports)
    else:
        answer = await within(ports.settings.time_limit_s, _list(inbound, context.principal, collection, ports))
    return answer.with_headers(NO_CACHE)


async def _list(inbound: Inbound, principal: Principal, collection: Collection[Any, Any], ports: ApiPorts) -> Answer:
    tokens = PageTokens(ports.sealer, path=whole_path_of(inbound.scope), caller=principal.caller)
    query_string = inbound.scope["query_string"].decode("latin-1")
    return await answer_list(collection, inbound.query, tokens, Places(principal.access), query_string=query_string)


async def _watch(
    inbound: Inbound,
    principal: Principal,
    collection: Collection[Any, Any],
    last_event_id: str | None,
    ports: ApiPorts,
) -> Answer:
    async def renew() -> Principal:
        if inbound.credentials is None:
            return ANONYMOUS
        asked = ports.authenticator.authenticate(inbound.credentials)
        return await within(ports.settings.time_limit_s, asked)

    return await answer_watch(
        collection, last_event_id=last_event_id, principal=principal, renew=renew, ports=ports.watch
    )
