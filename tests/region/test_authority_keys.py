"""What may be the public key of an SSH certificate authority."""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.errors import Invalid
from remuda.region.authorities.rules import AUTHORITY_KEY_TYPES, authority_key

PublicKey = ed25519.Ed25519PublicKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey

BLANK = "public key must be specified"
UNREADABLE = "public key must be a valid OpenSSH authorized key"
SEVERAL = "public key must contain a single key"
OPTIONS = "public key options are not supported"
TYPE = "public key type is not supported for SSH certificate authorities"


def line_of(key: PublicKey) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def wrapped(kind: str, rest: bytes = b"\0\0\0\1x") -> str:
    blob = len(kind).to_bytes(4) + kind.encode() + rest
    return f"{kind} {base64.b64encode(blob).decode()}"


ED25519 = line_of(ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key())
RSA = line_of(rsa.generate_private_key(65537, 2048).public_key())
P256, P384, P521 = (
    line_of(ec.derive_private_key(12345, curve).public_key())
    for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1())
)
GOOD = [ED25519, RSA, P256, P384, P521]
BLOB = ED25519.split()[1]


def rejection_of(text: str) -> str:
    with pytest.raises(Invalid) as refused:
        authority_key(text)
    assert (refused.value.field, refused.value.status) == ("spec.publicKey", 422)
    return refused.value.message


def test_every_type_is_among_the_good_ones() -> None:
    assert {line.split()[0] for line in GOOD} == AUTHORITY_KEY_TYPES


@pytest.mark.parametrize("line", GOOD)
def test_a_key_is_kept_canonically_and_with_a_comment_as_it_came(line: str) -> None:
    assert authority_key(line) == line
    assert authority_key(f" \t\n{line}\r\n ") == line
    assert authority_key(line.replace(" ", " \t ")) == line
    assert authority_key(f"{line} ca@example.com") == f"{line} ca@example.com"
    assert authority_key(f"\n {line}   the  authority of Bücher \n") == f"{line}   the  authority of Bücher"


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n"])
def test_a_blank_text_is_no_key(text: str) -> None:
    assert rejection_of(text) == BLANK


FLAWED: dict[str, str] = {
    "a word": "nonsense",
    "a type alone": "ssh-ed25519",
    "a key without its type": BLOB,
    "a key that is not base64": "ssh-ed25519 AAAA!!!!",
    "a key in another alphabet": ED25519.replace("/", "_").replace("+", "-")[:-4] + "__--",
    "a key cut short": ED25519[:-8],
    "a key with bytes behind it": f"ssh-ed25519 {base64.b64encode(base64.b64decode(BLOB) + b'x').decode()}",
    "an empty key": "ssh-ed25519 ",
    "a length beyond the end": f"ssh-ed25519 {base64.b64encode(bytes([255] * 8)).decode()}",
    "another type than it says": f"ssh-rsa {BLOB}",
    "another curve than it says": f"ecdsa-sha2-nistp384 {P256.split()[1]}",
    "an unknown type": wrapped("ssh-unheard-of"),
    "a type in capitals": f"SSH-ED25519 {BLOB}",
    "a point that is not on the curve": wrapped("ecdsa-sha2-nistp256", b"\0\0\0\x08nistp256\0\0\0\x41\x04" + bytes(64)),
    "a comment line": "# only a remark",
    "a comment line before the key": f"# mine\n{ED25519}",
    "a private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE=\n-----END OPENSSH PRIVATE KEY-----",
    "a PEM": "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----",
    "a zero byte in the comment": f"{ED25519} c\0d",
    "an escape in the comment": f"{ED25519} c\x1b[2Jd",
    "a hidden line break in the comment": f"{ED25519} c\u2028d",
    "a form feed for a blank": ED25519.replace(" ", "\f"),
    "an endless comment": f"{ED25519} {'c' * 20000}",
    "a quote that does not end": f'command="x {ED25519}',
    "the known_hosts format": f"example.com,@revoked {'x'}",
}


@pytest.mark.parametrize("text", FLAWED.values(), ids=FLAWED)
def test_what_is_not_one_readable_key_is_refused(text: str) -> None:
    assert rejection_of(text) == UNREADABLE


@pytest.mark.parametrize("between", ["\n", "\r\n", "\r", "\n\n"])
@pytest.mark.parametrize("second", [ED25519, RSA, "rubbish", "# a remark"])
def test_a_second_line_is_refused(between: str, second: str) -> None:
    assert rejection_of(f"{ED25519} first{between}{second}") == SEVERAL


@pytest.mark.parametrize(
    "options",
    [
        *(
            "restrict",
            "cert-authority",
            "no-pty,no-x11-forwarding",
            'command="echo hi"',
            'from="*.example.com,10.0.0.1"',
        ),
        *(r'command="say \"hi there\" twice",restrict', 'environment="A=b c"'),
    ],
)
def test_options_are_refused(options: str) -> None:
    assert rejection_of(f"{options} {ED25519}") == OPTIONS
    assert rejection_of(f"{options}\t{RSA} comment") == OPTIONS


@pytest.mark.parametrize(
    "kind",
    [
        *("ssh-dss", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
        *("ssh-ed25519-cert-v01@openssh.com", "ssh-rsa-cert-v01@openssh.com"),
        *("ecdsa-sha2-nistp256-cert-v01@openssh.com", "sk-ssh-ed25519-cert-v01@openssh.com"),
    ],
)
def test_a_key_of_another_type_is_refused(kind: str) -> None:
    assert rejection_of(wrapped(kind)) == TYPE
    assert rejection_of(f"{wrapped(kind)} comment") == TYPE
    assert rejection_of(f"{kind} {BLOB}") == UNREADABLE, "the type is the one inside, too"


@given(st.text() | st.builds("{} {}".format, st.sampled_from(sorted(AUTHORITY_KEY_TYPES)), st.text()))
def test_whatever_is_sent_is_refused_with_one_of_the_sentences(text: str) -> None:
    assert rejection_of(text) in {BLANK, UNREADABLE, SEVERAL, OPTIONS, TYPE}


@given(blob=st.binary(max_size=80), kind=st.sampled_from(sorted(AUTHORITY_KEY_TYPES)))
def test_no_made_up_blob_is_a_key(blob: bytes, kind: str) -> None:
    assert rejection_of(f"{kind} {base64.b64encode(blob).decode()}") == UNREADABLE
    assert rejection_of(wrapped(kind, blob)) == UNREADABLE


@given(comment=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")), max_size=50))
def test_what_is_stored_is_one_line_and_stays_as_it_is(comment: str) -> None:
    stored = authority_key(f"{ED25519} {comment}")
    assert stored.startswith(ED25519)
    assert len(stored.splitlines()) == 1
    assert authority_key(stored) == stored


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
@pytest.mark.parametrize("line", GOOD)
def test_openssh_reads_what_is_stored(line: str, tmp_path: Path) -> None:
    (tmp_path / "ca.pub").write_text(authority_key(f" {line} ") + "\n")
    told = subprocess.run(["ssh-keygen", "-lf", tmp_path / "ca.pub"], capture_output=True, text=True, check=True)
    assert "SHA256:" in told.stdout
