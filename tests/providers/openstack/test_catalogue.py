"""Which images and flavors of a cloud are offered, and how they are described."""

import base64
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from remuda.kernel.errors import Invalid
from remuda.providers.openstack.catalogue import NovaFlavor, flavor_id
from remuda.providers.openstack.hosts import traits_of
from remuda.providers.openstack.image_properties import image_of
from remuda.providers.openstack.image_signatures import SIGNATURE, ImageVerifier

IMAGE: dict[str, Any] = {
    "id": "5f0a5f0e-4b7e-4a53-9a53-2f4d1f7c9a10",
    "name": "debian-12",
    "status": "active",
    "created_at": "2026-01-01T00:00:00Z",
    "min_disk": 0,
    "size": 1,
    "unikorn:os:kernel": "linux",
    "unikorn:os:family": "debian",
    "unikorn:os:distro": "debian",
    "unikorn:os:version": "12",
    "unikorn:virtualization": "virtualized",
}


def test_an_image_with_the_properties_is_offered() -> None:
    image = image_of(IMAGE)
    assert image is not None
    assert (image.id, image.architecture, image.size_gib, image.state) == (IMAGE["id"], "x86_64", 1, "ready")


@pytest.mark.parametrize("name", [each for each in IMAGE if each.startswith("unikorn:")])
def test_an_image_that_lacks_a_property_is_not_offered(name: str) -> None:
    assert image_of({key: value for key, value in IMAGE.items() if key != name}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"unikorn:os:kernel": "windows"},
        {"unikorn:virtualization": "container"},
        {"unikorn:os:version": 12},
        {"architecture": "riscv64"},
        {"created_at": "yesterday"},
        {"size": "large"},
    ],
)
def test_one_image_that_is_described_wrongly_is_left_out(wrong: dict[str, Any]) -> None:
    assert image_of(IMAGE | wrong) is None


def test_an_image_with_half_a_description_of_its_gpu_is_offered_all_the_same() -> None:
    image = image_of(IMAGE | {"unikorn:gpu_vendor": "NVIDIA"})
    assert image is not None
    assert image.gpu is not None
    assert image.gpu.models == ()


@pytest.mark.parametrize(
    ("size", "expected"), [({"min_disk": 5}, 5), ({"virtual_size": (3 << 30) + 1}, 4), ({"size": None}, 1)]
)
def test_the_size_of_an_image_is_in_whole_gibibytes(size: dict[str, Any], expected: int) -> None:
    image = image_of(IMAGE | size)
    assert image is not None
    assert image.size_gib == expected


def signed_by(key: Any, image: str) -> str:
    return base64.b64encode(key.sign(image.encode(), ECDSA(SHA256()))).decode()


def pem(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return found


def test_a_signature_is_of_the_id_and_by_the_key_of_the_region() -> None:
    key, other = generate_private_key(SECP256R1()), generate_private_key(SECP256R1())
    verifier = ImageVerifier(pem(key))
    assert verifier.is_signed(IMAGE | {SIGNATURE: signed_by(key, IMAGE["id"])})
    for wrong in ("", "no base64!", base64.b64encode(b"no signature").decode(), signed_by(other, IMAGE["id"])):
        assert not verifier.is_signed(IMAGE | {SIGNATURE: wrong})
    assert not verifier.is_signed(IMAGE | {SIGNATURE: signed_by(key, "another image")})
    assert not verifier.is_signed(IMAGE)


@pytest.mark.parametrize("key", [b"", b"no PEM", pem(Ed25519PrivateKey.generate())])
def test_a_key_of_another_kind_is_rejected(key: bytes) -> None:
    with pytest.raises(Invalid, match="ECDSA"):
        ImageVerifier(key)


def test_a_flavor_id_that_is_no_uuid_gets_one_that_stays() -> None:
    assert flavor_id("42") == flavor_id("42") != flavor_id("43")
    assert UUID(flavor_id("42")).version == 5
    assert flavor_id(IMAGE["id"]) == IMAGE["id"]


def test_the_traits_of_a_flavor_are_required_or_forbidden() -> None:
    specs = {"trait:CUSTOM_FAST": "required", "trait:CUSTOM_OLD": "forbidden", "hw:cpu_sockets": "1"}
    flavor = NovaFlavor(id="1", name="f", vcpus=1, ram=1, disk=0, extra_specs=specs)
    assert traits_of(flavor) == ["CUSTOM_FAST", "!CUSTOM_OLD"]
