"""Images of a region: public ones with the properties that are required, and those that we created.

Ours belong to the region's own project, or to that of the server that a snapshot was created from. Their visibility is
`community`, so that every tenancy can use them by id; region checks the permissions of organizations.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.catalogue import CloudImage, CloudImageSpec
from remuda.providers.contract.common import InUse, Rejected
from remuda.providers.openstack.client import WHOLE, CloudSession
from remuda.providers.openstack.errors import ApiError
from remuda.providers.openstack.image_properties import DOMAIN, OUR_ID, image_of, properties_of
from remuda.providers.openstack.image_signatures import ImageVerifier
from remuda.providers.openstack.tenancies import TenancyAccess, only

_CONFLICT = 409
_PAGE = 200
_VISIBILITY = [{"op": "replace", "path": "/visibility", "value": "community"}]
_PATCH_TYPE = "application/openstack-images-v2.1-json-patch"

Document = dict[str, Any]


class OpenStackImages:
    """Capability of managing images."""

    def __init__(self, access: TenancyAccess, verifier: ImageVerifier | None = None) -> None:
        self._access, self._verifier = access, verifier
        self._our_ids: dict[str, str] = {}

    async def images(self) -> Sequence[CloudImage]:
        return [image for image, _ in await self._read()]

    async def find_image(self, image: str) -> CloudImage | None:
        found = await self._find(image)
        return None if found is None else found[0]

    async def create_image(self, desired: CloudImageSpec, content: AsyncIterator[bytes]) -> CloudImage:
        if await self.find_image(desired.id) is not None:
            raise AlreadyExists("image", desired.id)
        first = await anext(content, b"")
        if not first:
            raise Rejected(f"the image {desired.name} is empty")
        session = await self._access.own()
        body = {
            "name": desired.name,
            "visibility": "community",
            "container_format": "bare",
            "disk_format": "raw",
            **self.properties_of(desired),
        }
        created: Document = await session.post("image", "/images", body, WHOLE, Document)
        try:
            await session.upload("image", f"/images/{created['id']}/file", _chain(first, content))
        except BaseException:
            await session.delete("image", f"/images/{created['id']}")
            raise
        found = await self.find_image(desired.id)
        if found is None:
            raise NotFound("image", desired.id)
        return found

    async def remove_image(self, image: str) -> None:
        found = await self._find(image)
        if found is None:
            return
        document = found[1]
        if OUR_ID not in document:
            raise NotFound("image", image)
        async for _, _, session in self._access.sessions():
            if await session.items("compute", "/servers", "servers", Document, image=document["id"], limit=1):
                raise InUse("image", image)
        owner = self._access.manager_in(document["owner"])
        try:
            await owner.delete("image", f"/images/{document['id']}")
        except ApiError as error:
            if error.http_status != _CONFLICT:
                raise
            raise InUse("image", image) from None
        await self._access.remove_without_images(document["owner"])

    async def cloud_id(self, image: str) -> tuple[str, CloudImage]:
        """Return the id that Glance has for an image, and the image, or raise NotFound."""
        found = await self._find(image)
        if found is None:
            raise NotFound("image", image)
        cloud_id = str(found[1]["id"])
        self._our_ids[cloud_id] = image
        return cloud_id, found[0]

    async def our_id(self, cloud_id: str) -> str:
        """Return our id of an image that a server names."""
        if cloud_id and cloud_id not in self._our_ids:
            await self._read()
        return self._our_ids.get(cloud_id, cloud_id)

    def properties_of(self, desired: CloudImageSpec) -> dict[str, str]:
        """Return the properties of an image that is created in this region."""
        return {**properties_of(desired), DOMAIN: self._access.domain_id}

    async def publish(self, session: CloudSession, cloud_id: str) -> None:
        """Let every tenancy use an image of this session's project."""
        await session.patch("image", f"/images/{cloud_id}", _VISIBILITY, content_type=_PATCH_TYPE)

    async def _find(self, image: str) -> tuple[CloudImage, Document] | None:
        session = await self._access.own()
        query = {OUR_ID: image, DOMAIN: self._access.domain_id, "visibility": "community"}
        documents = await session.items("image", "/images", "images", Document, **query)
        document = only(documents, "image", image, "image")
        if document is None:
            document = await self._public(session, image)
        cloud_image = None if document is None else self._offered(document)
        return None if cloud_image is None or document is None else (cloud_image, document)

    def _offered(self, document: Document) -> CloudImage | None:
        """Return an image that is offered: ours, or one with the properties and the signature that are required."""
        image = image_of(document)
        is_ours = OUR_ID in document
        if image is None or is_ours or self._verifier is None or self._verifier.is_signed(document):
            return image
        return None

    @staticmethod
    async def _public(session: CloudSession, image: str) -> Document | None:
        documents = await session.items("image", "/images", "images", Document, id=f"in:{image}", visibility="public")
        return documents[0] if documents else None

    async def _read(self) -> Sequence[tuple[CloudImage, Document]]:
        session = await self._access.own()
        documents = await _listed(session, visibility="public")
        ours = {DOMAIN: self._access.domain_id, "visibility": "community"}
        documents += [each for each in await _listed(session, **ours) if OUR_ID in each]
        self._our_ids = {each["id"]: str(each.get(OUR_ID, each["id"])) for each in documents}
        found = [(self._offered(each), each) for each in documents]
        return [(image, document) for image, document in found if image is not None]


async def _listed(session: CloudSession, **query: object) -> list[Document]:
    found: list[Document] = []
    more: dict[str, object] = {"limit": _PAGE}
    while True:
        page = await session.items("image", "/images", "images", Document, **query, **more)
        found += page
        if len(page) < _PAGE:
            return found
        more["marker"] = page[-1]["id"]


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk
