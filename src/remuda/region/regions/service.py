"""Regions as platform administrators manage them: the service that the API's routes call.

A create, and an update that concerns the cloud, ask the cloud before anything is stored; so a region that is stored
could be used at that time. Regions of the configuration are changed there.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from remuda.access.checks import require_everywhere
from remuda.access.principal import Context, Permission, Verb
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Forbidden, Invalid, Malformed
from remuda.region.catalogue.seed import contents, region_id
from remuda.region.kinds.regions import REGION, Region, RegionSpec
from remuda.region.ports import AccountNames, RegionConnector
from remuda.region.regions import rules, schema
from remuda.resources.conventions import NAME
from remuda.resources.crud import find
from remuda.resources.service import ResourceService
from remuda.resources.tags import check_tags

_OPERATION = "remuda/operation"
"""Annotation with the request that created a region: repeated, it finds the region instead of a conflict."""

_HIDDEN = frozenset({"identities", "openstackidentities", "addresses"})
"""Kinds of objects that controllers delete after the networks to which they belong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions(ResourceService[Region, schema.PlatformRegionRead]):
    """Regions that were created by requests."""

    kind, endpoint, view, noun = REGION, "region:regions", rules.REGION_VIEW, "region"

    clock: Clock
    connector: RegionConnector

    def list(self, context: Context) -> Collection[Region, list[schema.PlatformRegionRead]]:
        self._authorize(context, "read")
        return Collection(store=self.store, kind=Region, view=self.view, visible=rules.is_managed)

    async def get(self, context: Context, region: str) -> Region:
        return await self._get(context, "read", region)

    async def create(self, context: Context, body: schema.PlatformRegionWrite) -> Region:
        """Create a region whose cloud accepts the account. Its id is derived from its name, which no other has."""
        self._authorize(context, "create")
        rules.check_spec(body.spec)
        check_tags(body.metadata.tags)
        name = region_id(body.metadata.name)
        found = await find(self.store, Region, name)
        if found is not None:
            return _created_before(found, context)
        spec = await self._checked(name, rules.desired_spec(body.spec, None), rules.names_of(body.spec), None)
        new = rules.new_region(name, body, spec, context.principal)
        created = await self.insert(context, _annotated(new, _OPERATION, context.operation))
        return _created_before(created, context)

    async def update(self, context: Context, region: str, body: schema.PlatformRegionWrite) -> Region:
        rules.check_spec(body.spec)
        check_tags(body.metadata.tags)

        async def change(found: Region) -> Region:
            if found.is_deleting:
                raise Malformed("region is being deleted")
            requested = rules.desired_spec(body.spec, found.spec)
            spec = await self._checked(found.name, requested, rules.names_of(body.spec), found.spec)
            return rules.updated_region(found, body, spec, context.principal, self.clock.now())

        return await self.update_found(context, lambda: self._get(context, "update", region), change)

    async def delete(self, context: Context, region: str) -> None:
        """Request the deletion of a region that nothing is in."""
        await self.delete_found(context, lambda: self._get(context, "delete", region))

    async def check(self, context: Context, region: str) -> schema.RegionCheckRead:
        """Ask the cloud of a region what it offers and lacks."""
        found = await self._get(context, "update", region)
        return rules.read_check(await self.connector.check(found.name, found.spec, AccountNames()))

    async def check_deletion(self, found: Region) -> None:
        visible = [each for each in await contents(self.store, found.name) if each not in _HIDDEN]
        if visible:
            name = found.metadata.labels[NAME]
            raise Forbidden(f"The region {name} still has {', '.join(visible)}: delete them first, or disable it.")

    async def _checked(
        self, region: str, spec: RegionSpec, names: AccountNames, before: RegionSpec | None
    ) -> RegionSpec:
        if rules.is_same_cloud(before, spec):
            return spec
        checked = (await self.connector.check(region, spec, names)).spec
        await self._check_domain(region, checked)
        return checked

    async def _check_domain(self, region: str, spec: RegionSpec) -> None:
        """Raise Invalid if another region has the domain: each would take the other's projects for orphans."""
        domain = rules.domain_of(spec)
        for other in (await self.store.list(Region)).items if domain else ():
            if other.name != region and rules.domain_of(other.spec) == domain:
                problem = f"is the domain of the region {other.metadata.labels[NAME]}"
                raise Invalid("spec.openstack.domainName", problem, remedy="give each region a domain of its own")

    async def _get(self, context: Context, verb: Verb, region: str) -> Region:
        self._authorize(context, verb)
        found = await self.store.get(Region, region)
        if not rules.is_managed(found):
            name = found.metadata.labels[NAME]
            raise Forbidden(f"The region {name} is defined by the configuration: change it there.")
        return found

    def _authorize(self, context: Context, verb: Verb) -> None:
        require_everywhere(context.principal, Permission(self.endpoint, verb))


def _created_before(found: Region, context: Context) -> Region:
    """Return a region that this request has created, or raise AlreadyExists for another one of its name."""
    if found.metadata.annotations.get(_OPERATION) != context.operation:
        raise AlreadyExists("region", found.metadata.labels[NAME])
    return found


def _annotated(region: Region, annotation: str, text: str) -> Region:
    annotations = {**region.metadata.annotations, annotation: text}
    return replace(region, metadata=replace(region.metadata, annotations=annotations))
