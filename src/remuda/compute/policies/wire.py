"""What clients send and read of a project's policy."""

from typing import Annotated

import msgspec

from remuda.http.routes import Id, Parameters, Wire


class PolicyWire(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a project demands of each of its instances, whatever the instance itself says."""

    deletion: Annotated[bool, msgspec.Meta(description="None of them can be deleted while this is set.")] = False
    plan: Annotated[
        bool, msgspec.Meta(description="A change that destroys something has to carry the hash of its plan.")
    ] = False


class PolicyPath(Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID"}):
    """A project."""

    organization: Id
    project: Id
