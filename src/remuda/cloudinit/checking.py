"""Whether user data is something that cloud-init will apply.

On the wire and in the store it is base64; what is checked is the bytes. It often holds secrets, so no refusal repeats
any of it. A client that was told base64 by its own user encodes that again, as the reference's Terraform provider did
until 1.4.0: no cloud-init applies base64, so what it stands for is meant. It is stored and shown as it was sent.
"""

import base64

from remuda.cloudinit.multipart import DEEPEST
from remuda.cloudinit.recognising import Unrecognized
from remuda.cloudinit.user_data import is_gzip, parts
from remuda.kernel.errors import Invalid, Malformed

LONGEST_USER_DATA = 64 * 1024
"""How many bytes user data may have."""


def read_user_data(text: str) -> bytes:
    """Return user data as bytes, or raise Malformed; what it says is never repeated."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:  # text beyond ASCII too
        raise Malformed("spec.userData is not base64: encode it with the standard alphabet and padding") from None
    try:
        meant = base64.b64decode(data, validate=True)
        parts(meant)
    except (ValueError, Unrecognized):  # nearly always: what cloud-init applies is never base64 throughout
        return data
    return meant


def check_user_data(data: bytes, *, with_authority: bool) -> None:
    """Raise Invalid unless a server can be made with this user data; empty is fine.

    With an SSH certificate authority we add a part of our own, which packed user data leaves no place for.
    """
    if len(data) > LONGEST_USER_DATA:
        raise Invalid(
            "userData",
            f"is longer than {LONGEST_USER_DATA} bytes",
            remedy="send less, for example an #include of what is too long",
        )
    if with_authority and is_gzip(data):
        raise _unrecognized("gzip userData cannot be combined with managed cloud-init augmentation")
    try:
        parts(data, deepest=DEEPEST - 1)  # one level is left for the message that ours may make around it
    except Unrecognized as error:
        raise _unrecognized(error.reason) from None


def _unrecognized(reason: str) -> Invalid:
    return Invalid("spec.userData", f"userData must be a recognized cloud-init format: {reason}")
