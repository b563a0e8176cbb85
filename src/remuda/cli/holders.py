"""What instances hold: if it cannot be given up for that, the instances are named."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from remuda.cli.crud import find, id_of
from remuda.cli.lookup import Asked
from remuda.cli.resources import INSTANCE, NETWORK, SECURITY_GROUP, SSH_CA, Noun
from remuda.kernel.errors import Forbidden, RemudaError

_SHOWN = 5
_REFUSED = "is in use"
_HELD: Final[Mapping[str, Callable[[Any], Sequence[str]]]] = {
    NETWORK.word: lambda instance: [instance["status"]["networkId"]],
    SECURITY_GROUP.word: lambda instance: (instance["spec"].get("networking") or {}).get("securityGroups", ()),
    SSH_CA.word: lambda instance: [instance["spec"].get("sshCertificateAuthorityId", "")],
}
"""The ids of what an instance holds, by what sort of thing that is."""


@contextmanager
def naming_holders(asked: Asked, noun: Noun, wanted: str) -> Iterator[None]:
    """Have the refusal to give something up say which instances hold it, as far as they can be seen."""
    try:
        yield
    except Forbidden as refused:
        if _REFUSED in refused.sentence and (names := _holders(asked, noun, wanted)):
            refused.sentence = refused.sentence.replace(_REFUSED, f"{_REFUSED} by {_told(names)}", 1)
        raise


def _holders(asked: Asked, noun: Noun, wanted: str) -> list[str]:
    try:
        held = id_of(find(asked, noun, wanted))
        instances = asked.session.get_all(INSTANCE.service, INSTANCE.path, asked.place.query)
    except RemudaError:
        return []
    return sorted(each["metadata"]["name"] for each in instances if held in _HELD[noun.word](each))


def _told(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the instance {names[0]}"
    shown, left = ", ".join(names[:_SHOWN]), len(names) - _SHOWN
    return f"{len(names)} instances ({shown}{f' and {left} more' if left > 0 else ''})"
