"""What passes between a client and a server of ours: who calls, how a request is written, what an error means.

A request is written from a route and its values, and an error comes back as the class it was raised as, with the
sentence that the server told. What only the raiser knew is blank.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from remuda.access.principal import Context, Principal
from remuda.http.claims import Claim, write_claim
from remuda.http.routes import AnyRoute, Nothing, Parameters
from remuda.kernel.errors import Invalid, ServerUnreachable
from remuda.kernel.secrets import Secret, hide, reveal

AnswerT = TypeVar("AnswerT")


class Credentials(Protocol):
    """Says who calls."""

    def headers(self, context: Context | None) -> Mapping[str, str]:
        """Return the headers that show it, for a request in this context or on nobody's behalf."""
        ...


class Bearer:
    """A token, fetched anew for each request, because tokens are renewed."""

    def __init__(self, token: Callable[[], Secret]) -> None:
        self._token = token

    def headers(self, context: Context | None) -> Mapping[str, str]:  # noqa: ARG002  a token speaks for itself
        """Return the token."""
        return {"Authorization": f"Bearer {self._token().reveal()}"}


class Service:
    """A service that acts for whoever stands behind the context. Its certificate is a matter of the TLS settings."""

    def __init__(self, name: str, *, impersonate: bool = False) -> None:
        """Take the service's own name, and whether to ask for no more than both it and the caller may."""
        self._name, self._impersonate = name, impersonate

    def headers(self, context: Context | None) -> Mapping[str, str]:
        """Return for whom the service acts: who pays, and who is audited."""
        claim = Claim(actor=self._name, type="system") if context is None else claim_of(context.principal)
        return {"X-Principal": write_claim(claim)} | ({"X-Impersonate": "true"} if self._impersonate else {})


def claim_of(principal: Principal) -> Claim:
    """Return how a service says that it acts for this one."""
    return Claim(
        actor=principal.who,
        type=principal.type,
        organization=principal.organization,
        project=principal.project,
        organizations=principal.organizations,
        issuer=principal.issuer,
        vouched_by=principal.vouched_by,
    )


def target_of(route: AnyRoute, path: Parameters, query: Parameters) -> str:
    """Return path and query as they go over the wire."""
    target = route.path
    for name, value in _values(path):
        target = target.replace(f"{{{name}}}", _segment(name, value))
    pairs = [(name, value) for name, value in _values(query) if value is not None]
    return f"{target}?{urlencode([*_spread(pairs)])}" if pairs else target


def _values(parameters: Parameters) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of parameters, but not those that are what they would be anyway."""
    for field in msgspec.structs.fields(parameters):
        value = getattr(parameters, field.name)
        if field.default is msgspec.NODEFAULT or value != field.default:
            yield field.encode_name, msgspec.to_builtins(value)


def _segment(name: str, value: Any) -> str:
    """Encode a value twice: servers cut a path at its slashes after decoding it once, and decode each value again."""
    if value == "":
        raise Invalid(name, "is empty", remedy="name what is meant")
    once = quote(_text(value), safe="")
    if not once.strip("."):  # what means "here" or "one up" to everybody between us and the server
        once = once.replace(".", "%2E")
    return quote(once, safe="")


def _spread(pairs: list[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, value in pairs:
        for each in value if isinstance(value, list | tuple) else [value]:
            yield name, _text(each)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def encode_body(body: Any) -> bytes | None:
    """Return a request's body, or None if it has none."""
    if body is None or isinstance(body, Nothing):
        return None
    return msgspec.json.encode(body, enc_hook=reveal)


def encode_form(form: Any) -> bytes | None:
    """Return a request's body as a form, or None if it has none."""
    if form is None or isinstance(form, Nothing):
        return None
    fields = msgspec.to_builtins(form, enc_hook=reveal)
    return urlencode([*_spread([(name, value) for name, value in fields.items() if value is not None])]).encode()


def read_answer(body: bytes, answer_type: type[AnswerT], *, server: str) -> AnswerT:
    """Return an answer as its type, or raise if it is no answer of ours."""
    if answer_type is type(None):
        return None
    try:
        return msgspec.json.decode(body, type=answer_type, dec_hook=hide)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnreachable(server, "its answer is not what the route promises") from None
