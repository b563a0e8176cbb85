"""What an operator sends and reads."""

from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.routes import Wire
from remuda.kernel.secrets import Secret

PATH = "/api/v1/operator/tokens"
"""Where the request is sent."""


class OperatorTokenWrite(Wire, frozen=True):
    """A request of an operator on the machine itself."""

    request: Annotated[Secret, msgspec.Meta(description="The request, sealed with the keys of this system.")]


class OperatorTokenRead(Wire, frozen=True):
    """A token in a user's name."""

    access_token: Annotated[Secret, msgspec.Meta(description="The token: it is shown this once.")]
    expiry: datetime
    subject: str
