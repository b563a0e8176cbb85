"""Requests and responses of suspensions."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Moment, Parameters, Uuid, Wire


class SuspensionPath(Parameters, frozen=True, rename={"suspension": "suspensionID"}):
    """Path of a suspension."""

    suspension: Annotated[Id, msgspec.Meta(description="Id of the suspended user.")]


class SuspensionWrite(Wire, frozen=True):
    """Person to be suspended."""

    subject: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=320, description="The person's e-mail address.", examples=["ada@example.com"]
        ),
    ]
    reason: Annotated[
        str,
        msgspec.Meta(
            max_length=1024,
            description="Shown only to those who may read suspensions.",
            examples=["The account sends spam."],
        ),
    ] = ""


class SuspensionRead(Wire, frozen=True):
    """A suspended person."""

    id: Annotated[Uuid, msgspec.Meta(description="Id of the user, which is global.")]
    subject: Annotated[str, msgspec.Meta(description="The person's e-mail address.")]
    since: Annotated[Moment, msgspec.Meta(description="Time of the suspension.")]
    by: Annotated[str, msgspec.Meta(description="Actor who suspended the person.")]
    reason: Annotated[str, msgspec.Meta(description="Reason of the suspension.")]
