"""A server's user data: what is taken, and what we add to it."""

import random
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from email.parser import BytesParser

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remuda.cloudinit.multipart import DEEPEST, FIRST_LINES
from remuda.cloudinit.user_data import MAX_USER_DATA, check_user_data, parts
from remuda.kernel.errors import Invalid
from remuda.region.servers.provider_spec import PART_NAME, with_authority
from tests.kit.user_data import BY_HAND, CONFIG, SCRIPT, mail, nested, packed, text

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop ca@example.com"
PREFIX = "userData must be a recognized cloud-init format: "


def rejection_of(data: bytes, *, with_authority: bool = False) -> str:
    with pytest.raises(Invalid) as refused:
        check_user_data(data, with_authority=with_authority)
    assert refused.value.status == 422
    return refused.value.message


PAYLOADS = [*(line + b"\n# more\n" for line in FIRST_LINES), BY_HAND, mail(text("#!/bin/sh\n", "x-shellscript"))]


@pytest.mark.parametrize("data", [b"", *PAYLOADS])
@pytest.mark.parametrize("with_authority", [False, True])
def test_what_cloud_init_knows_is_taken(data: bytes, *, with_authority: bool) -> None:
    check_user_data(data, with_authority=with_authority)


def test_packed_user_data_is_taken_unless_we_have_to_add_to_it() -> None:
    for data in PAYLOADS:
        check_user_data(packed(data), with_authority=False)
        assert rejection_of(packed(data), with_authority=True) == (
            PREFIX + "gzip userData cannot be combined with managed cloud-init augmentation"
        )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"hunter2", "unsupported userData format: first line must identify a cloud-init payload (#cloud-config, "),
        (b"\xff\xfe", "unsupported userData format: "),
        (b"IyEvYmluL3No", "unsupported userData format: "),
        (BY_HAND.replace(b'; boundary="//"', b""), "multipart userData boundary missing"),
        (BY_HAND[:-4], "multipart userData has no closing boundary"),
        (packed(b"hunter2"), "unsupported userData format: "),
        (b"\x1f\x8bhunter2", "gzip userData cannot be unpacked"),
        (packed(CONFIG.ljust(2**22, b"#")), "gzip userData has more than 1048576 bytes when it is unpacked"),
        (nested(DEEPEST), "multipart userData is nested too deep"),
    ],
)
def test_what_cloud_init_does_not_know_is_refused(data: bytes, reason: str) -> None:
    sentence = rejection_of(data)
    assert sentence.startswith(PREFIX + reason)
    assert "hunter2" not in sentence


def test_user_data_has_a_greatest_length() -> None:
    check_user_data(CONFIG.ljust(MAX_USER_DATA, b"#"), with_authority=False)
    assert rejection_of(CONFIG.ljust(MAX_USER_DATA + 1, b"#")) == (
        "userData is longer than 65536 bytes: send less, for example an #include of a long part."
    )


def test_without_user_data_ours_is_all_there_is() -> None:
    alone = with_authority(b"", KEY)
    (part,) = parts(alone)
    assert (part.content_type, part.content) == ("text/cloud-config", alone)
    assert yaml.safe_load(alone) == {
        "merge_how": [
            {"name": "list", "settings": ["append"]},
            {"name": "dict", "settings": ["no_replace", "recurse_list"]},
        ],
        "write_files": [
            {
                "path": "/etc/ssh/trusted-user-ca-keys.pub",
                "owner": "root:root",
                "permissions": "0644",
                "content": f"{KEY}\n",
            },
            {
                "path": "/etc/ssh/sshd_config.d/90-unikorn-trusted-user-ca.conf",
                "owner": "root:root",
                "permissions": "0644",
                "content": "TrustedUserCAKeys /etc/ssh/trusted-user-ca-keys.pub\n",
            },
        ],
        "runcmd": [["sh", "-c", "systemctl reload-or-restart sshd || systemctl reload-or-restart ssh"]],
    }


@pytest.mark.parametrize(
    "comment", ['"quoted" \\ and % {x}', "Bücher \U0001f600", "#: - {}", "'", "\t", "a" * 300, "\ufeff"]
)
def test_whatever_a_keys_comment_is_it_arrives_as_it_is(comment: str) -> None:
    key = f"ssh-ed25519 AAAA {comment}"
    assert yaml.safe_load(with_authority(b"", key))["write_files"][0]["content"] == f"{key}\n"
    assert with_authority(b"", key).isascii()


def as_python_reads(data: bytes) -> list[tuple[str, str | None, bytes]]:
    walked: list[Message] = list(BytesParser().parsebytes(data).walk())
    assert [each.defects for each in walked if each.defects] == []
    leaves = [each for each in walked if each.get_content_maintype() != "multipart"]
    return [(each.get_content_type(), each.get_filename(), bytes(each.get_payload(decode=True))) for each in leaves]


@pytest.mark.parametrize("data", PAYLOADS)
def test_the_users_parts_come_first_as_they_are_and_ours_last(data: bytes) -> None:
    result = with_authority(data, KEY)
    ours = ("text/cloud-config", PART_NAME, with_authority(b"", KEY))
    assert parts(result) == [*parts(data), ours]
    assert as_python_reads(result) == parts(result)


def test_what_mail_cannot_carry_as_it_is_is_encoded() -> None:
    for fit, unfit in ((b"x" * 998, b"x" * 999), (b"~", b"\x7f"), (b"\t", b"\r")):
        assert b"base64" not in with_authority(b"#!/bin/sh\n" + fit, KEY)
        assert b"base64" in with_authority(b"#!/bin/sh\n" + unfit, KEY)


def test_a_single_payload_gets_the_type_of_its_first_line() -> None:
    for line, content_type in FIRST_LINES.items():
        (first, _) = as_python_reads(with_authority(line + b"\n", KEY))
        assert first[0] == content_type


AWKWARD = {
    "other letters": "#cloud-config\n# Bücher\n".encode(),
    "no text": b"#!/bin/sh\n\x00\xff\xfe",
    "line breaks of mail": b"#!/bin/sh\r\necho\r\n",
    "no line break": b"#!/bin/true",
    "many line breaks": b"#!/bin/true\n\n\n\n",
    "long lines": b"#!/bin/sh\n" + b"x" * 5000,
    "what looks like a boundary": b"#!/bin/sh\n--\n--remuda-\n----\n",
    "what looks like a header": b"#cloud-config\nContent-Type: text/plain\n\nFrom me\n.\n",
}


@pytest.mark.parametrize("data", AWKWARD.values(), ids=AWKWARD)
def test_a_payload_arrives_to_the_byte(data: bytes) -> None:
    for read in (parts, as_python_reads):
        assert read(with_authority(data, KEY))[0][2] == data


@given(st.binary(), st.sampled_from(list(FIRST_LINES)))
def test_any_payload_arrives_to_the_byte(rest: bytes, line: bytes) -> None:
    data = line + b"\n" + rest
    result = with_authority(data, KEY)
    assert [part.content for part in parts(result)] == [data, with_authority(b"", KEY)]
    assert as_python_reads(result) == parts(result)
    assert with_authority(data, KEY) == result, "the same input gives the same bytes"


def test_no_boundary_occurs_in_what_it_separates() -> None:
    data = SCRIPT
    for _ in range(3):
        boundary = with_authority(data, KEY).split(b'"')[1]
        assert boundary not in data
        data = SCRIPT + b"--" + boundary + b"--\n"


def test_a_mixed_message_gets_our_part_and_is_otherwise_untouched() -> None:
    result = with_authority(BY_HAND + b"an epilogue\n", KEY)
    place = BY_HAND.index(b"--//--")
    assert result.startswith(BY_HAND[:place])
    assert result.endswith(BY_HAND[place:] + b"an epilogue\n")


def test_a_message_with_the_line_breaks_of_mail_keeps_them() -> None:
    result = with_authority(BY_HAND.replace(b"\n", b"\r\n"), KEY)
    assert result.count(b"\n") == result.count(b"\r\n")
    assert len(as_python_reads(result)) == 3
    assert yaml.safe_load(parts(result)[2].content) == yaml.safe_load(with_authority(b"", KEY))


@pytest.mark.parametrize("subtype", ["alternative", "related", "x-own"])
def test_a_message_of_another_kind_becomes_the_first_part_of_a_mixed_one(subtype: str) -> None:
    data = mail(text("#!/bin/sh\n", "x-shellscript"), text("#cloud-config\n", "cloud-config"), subtype=subtype)
    result = BytesParser().parsebytes(with_authority(data, KEY))
    assert result.get_content_type() == "multipart/mixed"
    assert [part.get_content_type() for part in result.get_payload()] == [  # type: ignore[union-attr]  # it has parts
        *(f"multipart/{subtype}", "text/cloud-config"),
    ]


def tree(source: random.Random, depth: int) -> MIMEBase:
    if depth == 0 or source.random() < 0.5:
        return text(f"#!/bin/sh\n{source.random()}\n", "x-shellscript")
    message = MIMEMultipart(source.choice(["mixed", "alternative"]))
    for _ in range(source.randint(1, 2)):
        message.attach(tree(source, depth - 1))
    return message


@given(st.integers(), st.sampled_from(["mixed", "alternative"]))
def test_any_message_that_is_taken_keeps_its_parts_and_gets_ours(seed: int, subtype: str) -> None:
    source = random.Random(seed)
    data = mail(*(tree(source, DEEPEST - 2) for _ in range(2)), subtype=subtype)
    check_user_data(data, with_authority=True)
    result = with_authority(data, KEY)
    assert parts(result)[:-1] == parts(data)
    assert parts(result)[-1].filename == PART_NAME
    assert as_python_reads(result) == parts(result)


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_a_line_break_ends_a_header(separator: str) -> None:
    part = f"X: 1{separator}Content-Transfer-Encoding: base64\n\n#!/bin/sh\n"
    data = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n--B\n{part}--B--\n'.encode()
    (found,) = parts(data)
    assert (found.content_type, found.content) == ("text/x-shellscript", b"#!/bin/sh")


@pytest.mark.parametrize(
    ("parameter", "filename"),
    [
        ("filename=a.sh", "a.sh"),
        ('FileName = "a b.sh"', "a b.sh"),
        ('filename="a\\"b.sh"', 'a"b.sh'),
        ("filename*=utf-8''%C3%A9.sh", "é.sh"),
        ('x="; filename=no.sh"; filename=yes.sh', "yes.sh"),
        ("x=1", None),
    ],
)
def test_the_name_of_a_part_is_a_parameter_of_its_header(parameter: str, filename: str | None) -> None:
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
    data = f"{head}--B\nContent-Disposition: attachment; {parameter}\n\n#!/bin/sh\n--B--\n".encode()
    assert [part.filename for part in parts(data)] == [filename]
