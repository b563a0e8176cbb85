"""Rules of images: validation, new imports, specs for providers, views."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.kernel.tags import Tag
from remuda.providers.contract.catalogue import CloudImage, CloudImageGpu, CloudImageSpec, CloudOperatingSystem
from remuda.region.images.schema import ImageCreate, ImageQuery
from remuda.region.kinds import images as stored
from remuda.resources.conventions import CONTROLLER_FINALIZER, NAME, ORGANIZATION, REGION, organization_of
from remuda.resources.metadata import new_metadata, new_tags, stored_tags
from remuda.resources.schema import (
    ImageGpuWire,
    ImageOsWire,
    ImageRead,
    ImageSpecRead,
    ImageStatusRead,
    MetadataWrite,
    StaticMetadataRead,
    TagWire,
)
from remuda.resources.tags import writable_tags

_GIB = 2**30
convert = msgspec.convert
_SOURCE = "images.unikorn-cloud.org:source"
_OWNER = "images.unikorn-cloud.org:organization-id"


def check_new(desired: ImageCreate, by: Principal) -> None:
    """Raise Invalid for GPU fields that no image has, and for tags that the caller may not set."""
    gpu = desired.spec.gpu
    if gpu is not None and not gpu.driver:
        raise Invalid("spec.gpu.driver", "is empty", remedy="name the version of the driver that is on the image")
    if gpu is not None and not all(gpu.models or ("",)):
        raise Invalid("spec.gpu.models", "names no model", remedy="name at least one that the driver is for")
    new_tags(desired.metadata, by)


def new_import(
    image: str, desired: ImageCreate, by: Principal, *, organization: str, region: str
) -> stored.ImageImport:
    spec = desired.spec
    where = {ORGANIZATION: organization, REGION: region}
    return stored.ImageImport(
        metadata=new_metadata(image, desired.metadata, by, labels=where, finalizers=(CONTROLLER_FINALIZER,)),
        spec=stored.ImageImportSpec(
            uri=spec.uri,
            architecture=spec.architecture,
            virtualization=spec.virtualization,
            os=convert(spec.os, stored.ImageOs, from_attributes=True),
            software_versions=spec.software_versions,
            gpu=convert(spec.gpu, stored.ImageGpu | None, from_attributes=True),
            tags=_with_own(stored_tags(desired.metadata), "import", organization),
        ),
    )


def cloud_image_spec(image: stored.ImageImport) -> CloudImageSpec:
    spec = image.spec
    return CloudImageSpec(
        id=image.name,
        name=image.metadata.labels[NAME],
        architecture=spec.architecture,
        virtualization=spec.virtualization,
        os=convert(spec.os, CloudOperatingSystem, from_attributes=True),
        software_versions=dict(spec.software_versions),
        gpu=convert(spec.gpu, CloudImageGpu | None, from_attributes=True),
        tags={tag.name: tag.value for tag in spec.tags},
        organization=organization_of(image),
    )


def image_of(image: stored.ImageImport) -> CloudImage:
    """Return an import as an image of the provider: it is not ready before the provider reports it."""
    created, status = image.metadata.creation_timestamp, image.status
    assert created is not None, "a stored object has a creation time"
    return CloudImage(
        **_fields(cloud_image_spec(image)),
        size_gib=-(-(status.size or 0) // _GIB),
        state="creating" if status.state == "ready" else status.state,
        created=created,
    )


def snapshot_of(
    source: CloudImage, image: str, desired: MetadataWrite, by: Principal, *, organization: str
) -> CloudImageSpec:
    """Return the spec of the source image with another name and tags, without tags of other services."""
    tags = _with_own(writable_tags(stored_tags(desired), by), "snapshot", organization)
    changes = {
        "id": image,
        "name": desired.name,
        "tags": {tag.name: tag.value for tag in tags},
        "organization": organization,
    }
    return CloudImageSpec(**_fields(source) | changes)


def _with_own(tags: Sequence[Tag], source: Literal["import", "snapshot"], organization: str) -> tuple[Tag, ...]:
    """Return tags with those of the source and the owner of an image, which callers cannot set."""
    own = (Tag(_SOURCE, source), Tag(_OWNER, organization))
    return (*(tag for tag in tags if tag.name not in {_SOURCE, _OWNER}), *own)


def _fields(image: CloudImageSpec) -> dict[str, Any]:
    return {name: getattr(image, name) for name in CloudImageSpec.__dataclass_fields__}


def matching_images(images: Iterable[CloudImage], query: ImageQuery, owners: frozenset[str]) -> list[CloudImage]:
    """Return the images that a query selects, for a caller who may read the images of `owners`."""
    is_only_owned = query.scope == "owned" and bool(query.organizations)
    visible = owners if is_only_owned else owners | {""}
    states = frozenset(query.status)
    return [each for each in images if each.organization in visible and (not states or each.state in states)]


def read_image(image: CloudImage) -> ImageRead:
    return ImageRead(
        metadata=StaticMetadataRead(
            id=image.id, name=image.name, tags=_read_tags(image.tags), creation_time=image.created
        ),
        spec=ImageSpecRead(
            architecture=image.architecture,
            size_gib=image.size_gib,
            virtualization=image.virtualization,
            os=convert(image.os, ImageOsWire, from_attributes=True),
            software_versions=dict(image.software_versions),
            gpu=convert(image.gpu, ImageGpuWire | None, from_attributes=True),
        ),
        status=ImageStatusRead(state=image.state),
    )


def _read_tags(tags: Mapping[str, str]) -> tuple[TagWire, ...]:
    return tuple(TagWire(name=name, value=value) for name, value in tags.items())
