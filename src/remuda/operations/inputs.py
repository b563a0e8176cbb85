"""The input of a run as its record keeps it: as JSON for everybody's eyes, or sealed where it holds a secret.

A saga says itself that its input holds one (`Saga.holds_secret`). If it does not say so, a `Secret` in its input is
refused: it would be stored for everybody to read.
"""

from typing import Any

import msgspec

from remuda.kernel.secrets import Secret
from remuda.operations.kinds import OperationSpec
from remuda.operations.saga import AnySaga


def stored_input(saga: AnySaga, input: msgspec.Struct) -> tuple[str, Secret | None]:  # noqa: A002  as in `Operations.run`
    """Return what a record keeps of an input: the part to be read by all, and the part to be sealed."""
    if not saga.holds_secret:
        return msgspec.json.encode(input).decode(), None
    return "", Secret(msgspec.json.encode(input, enc_hook=Secret.reveal).decode())


def read_input(saga: AnySaga, spec: OperationSpec) -> Any:
    """Return the input that a record keeps, or raise msgspec.MsgspecError."""
    text = spec.input if spec.sealed_input is None else spec.sealed_input.reveal()
    return msgspec.json.decode(text, type=saga.input_type, dec_hook=_hide)


def _hide(kind: type, value: Any) -> Any:
    return kind(value)
