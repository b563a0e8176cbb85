"""Whether a server's user data is something that cloud-init will apply.

User data is the decoded bytes: the wire's base64 is undone by its type. It often holds secrets, so no refusal repeats
any of it.
"""

from remuda.cloudinit.multipart import DEEPEST
from remuda.cloudinit.parts import is_gzip, parts
from remuda.cloudinit.recognising import Unrecognized
from remuda.kernel.errors import Invalid

__all__ = ["LONGEST_USER_DATA", "check_user_data"]

LONGEST_USER_DATA = 64 * 1024
"""How many bytes user data may have."""


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
