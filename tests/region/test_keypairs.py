"""Key pairs by which a server's first user logs in."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.randomness import SeededRandomness, SystemRandomness
from remuda.region.authorities.rules import authority_key
from remuda.region.networks.controller import new_key_pair


@given(st.integers(0, 2**32))
def test_both_halves_are_readable_and_belong_together(seed: int) -> None:
    pair = new_key_pair(SeededRandomness(seed))
    private = load_ssh_private_key(pair.private.reveal().encode(), password=None)
    assert isinstance(private, Ed25519PrivateKey)
    assert private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() == pair.public
    private_signature = private.sign(b"message")
    public = load_ssh_public_key(pair.public.encode())
    assert public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() == pair.public
    private.public_key().verify(private_signature, b"message")
    assert authority_key(pair.public) == pair.public


def test_the_same_randomness_gives_the_same_text_and_another_another() -> None:
    first, again, other = (new_key_pair(SeededRandomness(seed)) for seed in (1, 1, 2))
    assert first == again
    assert (first.public, first.private) != (other.public, other.private)
    assert new_key_pair(SystemRandomness()).public != new_key_pair(SystemRandomness()).public


def test_a_key_pair_does_not_show_its_private_half() -> None:
    pair = new_key_pair(SystemRandomness())
    assert "PRIVATE KEY" not in f"{pair} {pair!r}"


def test_the_file_looks_as_openssh_writes_it() -> None:
    lines = new_key_pair(SystemRandomness()).private.reveal().split("\n")
    assert (lines[0], lines[-2:]) == (
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        ["-----END OPENSSH PRIVATE KEY-----", ""],
    )
    assert {len(line) for line in lines[1:-3]} == {70}


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_openssh_finds_the_public_half_in_the_private_one(tmp_path: Path) -> None:
    pair, path = new_key_pair(SystemRandomness()), tmp_path / "id"
    path.write_text(pair.private.reveal())
    path.chmod(0o600)
    told = subprocess.run(["ssh-keygen", "-yf", path], capture_output=True, text=True, check=True)
    assert told.stdout.split()[:2] == pair.public.split()
