"""Routes of regions as objects, which only platform administrators have permission to call."""

from functools import partial

from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Route
from remuda.region.names import RegionPath, permission
from remuda.region.regions import schema
from remuda.region.regions.rules import REGION_VIEW
from remuda.region.regions.service import Regions

_REGIONS = "/api/v2/platform/regions"

ROUTES: list[AnyRoute] = [
    *crud(
        Regions,
        path=_REGIONS,
        item=RegionPath,
        name="platform_region",
        noun="a region",
        scope="everywhere",
        permission=partial(permission, "regions"),
        view=REGION_VIEW,
        create=schema.PlatformRegionWrite,
        update=schema.PlatformRegionWrite,
        read=schema.PlatformRegionRead,
        accepted=("delete",),
        summaries={
            "list": "List the regions that are not defined by the configuration",
            "create": "Add a region",
            "update": "Update, disable or enable a region; without a password the stored one stays",
            "delete": "Remove a region that nothing is in",
        },
        descriptions={
            "create": "The server logs in at the cloud and checks the account first. After an error nothing is stored.",
            "update": "The server checks the account if the section of the cloud changes. A new endpoint, domain or "
            "account needs the password.",
        },
        overrides={"create": {"errors": (409,)}},
    ),
    Route(
        method="POST",
        path=f"{_REGIONS}/{{regionID}}/check",
        name="check_platform_region",
        summary="Ask the cloud of a region what it offers, and what it lacks",
        scope="everywhere",
        permission=permission("regions", "update"),
        path_type=RegionPath,
        response_type=schema.RegionCheckRead,
        service=Regions,
        calls=Regions.check,
    ),
]
