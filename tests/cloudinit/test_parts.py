"""The parts of user data, whatever it is wrapped in."""

import base64
import contextlib
import gzip
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.parser import BytesParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.cloudinit.multipart import DEEPEST, UnrecognizedUserData
from remuda.cloudinit.user_data import MAX_LINES, MAX_UNPACKED, Part, is_gzip, parts
from tests.kit.user_data import BY_HAND, CONFIG, SCRIPT, mail, nested, packed, text


def reason_of(data: bytes) -> str:
    with pytest.raises(UnrecognizedUserData) as refused:
        parts(data)
    return refused.value.reason


def test_no_user_data_has_no_parts() -> None:
    assert parts(b"") == []


def test_a_single_payload_is_its_only_part() -> None:
    assert parts(CONFIG) == [Part("text/cloud-config", None, CONFIG)]


TWO = [Part("text/cloud-config", "config.yaml", CONFIG), Part("text/x-shellscript", None, SCRIPT)]


def test_a_message_has_its_parts_in_order() -> None:
    assert parts(BY_HAND) == TWO


REWRITTEN = {
    "headers in the other order": BY_HAND.replace(
        b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"',
        b'Content-Type: multipart/mixed; boundary="//"\nMIME-Version: 1.0',
    ),
    "a header before them": b"From: me@example.com\nX-Note: y\n" + BY_HAND,
    "a folded header": BY_HAND.replace(b"mixed; boundary", b"mixed;\n\tboundary"),
    "names in capitals": BY_HAND.replace(b"MIME-Version", b"mime-version").replace(b"Content-Type", b"CONTENT-TYPE"),
    "a boundary without quotes": BY_HAND.replace(b'"//"', b"//"),
    "a preamble and an epilogue": BY_HAND.replace(b"\n\n--//", b"\n\nhello\n--//x\n --//\n--//", 1) + b"bye\n--//\n",
    "blanks behind a boundary": BY_HAND.replace(b"--//\n", b"--// \t\n").replace(b"--//--\n", b"--//-- "),
    "no line break at the end": BY_HAND[:-1],
    "another kind of message": BY_HAND.replace(b"multipart/mixed", b"Multipart/Alternative"),
}


@pytest.mark.parametrize("data", REWRITTEN.values(), ids=REWRITTEN)
def test_a_message_may_be_written_in_other_ways(data: bytes) -> None:
    assert parts(data) == TWO


def test_a_message_may_have_the_line_breaks_of_mail() -> None:
    with_carriage = BY_HAND.replace(b"\n", b"\r\n")
    assert [part.content.replace(b"\r\n", b"\n") for part in parts(with_carriage)] == [CONFIG, SCRIPT]


@pytest.mark.parametrize(
    ("told", "content", "effective"),
    [
        ("plain", "#cloud-config\n", "text/cloud-config"),
        ("plain", "hello\n", "text/plain"),
        ("x-not-multipart", "#!/bin/sh\n", "text/x-shellscript"),
        ("x-shellscript", "#cloud-config\n", "text/cloud-config"),
        ("x-shellscript", "echo\n", "text/x-shellscript"),
        ("cloud-config", "hostname: a\n", "text/cloud-config"),
        ("cloud-boothook", "#!/bin/sh\n", "text/cloud-boothook"),
    ],
)
def test_a_part_is_what_cloud_init_takes_it_for(told: str, content: str, effective: str) -> None:
    assert parts(mail(text(content, told))) == [Part(effective, None, content.encode())]


def test_transfer_encodings_are_undone() -> None:
    first = text("#cloud-config\n# ü\n", "cloud-config", "utf-8")
    data = mail(first, MIMEApplication(b"\x00\xff", "octet-stream"))
    assert [part.content for part in parts(data)] == ["#cloud-config\n# ü\n".encode(), b"\x00\xff"]
    quoted = BY_HAND.replace(
        b"Content-Type: text/x-sh", b"Content-Transfer-Encoding: Quoted-Printable\nContent-Type: text/x-sh"
    )
    assert parts(quoted.replace(b"echo hello", b"echo h=65llo =\n;"))[1].content == b"#!/bin/sh\necho hello ;\n"


def test_messages_within_messages_are_read_through() -> None:
    inner = MIMEMultipart("alternative")
    inner.attach(text("#!/bin/sh\n", "x-shellscript"))
    data = mail(text("#cloud-config\n", "cloud-config"), inner, text("#include\n", "x-include-url"))
    assert [part.content_type for part in parts(data)] == [
        *("text/cloud-config", "text/x-shellscript", "text/x-include-url"),
    ]
    assert len(parts(nested(DEEPEST))) == 1
    assert reason_of(nested(DEEPEST + 1)) == "multipart userData is nested too deep"


def test_a_part_may_be_empty() -> None:
    for body in (b"--x\nA: b\n\n--x--", b"--x\n\n--x--", b"--x\nA: b\n\n\n--x--"):
        data = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n" + body
        assert [(part.content_type, part.content) for part in parts(data)] == [("text/plain", b"")]


def message(body: bytes, content_type: bytes = b"multipart/mixed; boundary=x") -> bytes:
    return b"MIME-Version: 1.0\nContent-Type: " + content_type + b"\n\n" + body


WHOLE = b"--x\nContent-Type: text/plain\n\nhello\n--x--\n"
UNSUPPORTED = "unsupported userData format: first line must identify a cloud-init payload"

FLAWED = {
    "words": (b"secret words", UNSUPPORTED),
    "binary": (b"\x00\x01\x02", UNSUPPORTED),
    "one header": (b"Content-Type: multipart/mixed; boundary=x", UNSUPPORTED),
    "a message of one part": (message(b"#cloud-config\n", b"text/cloud-config"), UNSUPPORTED),
    "a broken header": (b"MIME-Version: 1.0\nno header\n\n" + WHOLE, UNSUPPORTED),
    "endless headers": (b"A: " + b"b" * 9000 + b"\n" + message(WHOLE), UNSUPPORTED),
    "headers up to where we stop looking": (
        (message(b"")[:-1] + b"A: ").ljust(8193, b"b") + b"\nB: c\n\n" + WHOLE,
        UNSUPPORTED,
    ),
    "a URL": (b"https://example.com/secret", UNSUPPORTED),
    "no boundary": (message(WHOLE, b"multipart/mixed"), "multipart userData boundary missing"),
    "an empty boundary": (message(WHOLE, b'multipart/mixed; boundary=""'), "multipart userData boundary missing"),
    "a strange boundary": (
        message(WHOLE, "multipart/mixed; boundary=ü".encode()),
        "multipart userData boundary is malformed",
    ),
    "no version": (message(WHOLE).partition(b"\n")[2], "multipart userData needs a MIME-Version header"),
    "no UTF-8": (message(WHOLE).replace(b"hello", b"h\xff"), "multipart userData is not UTF-8"),
    "no delimiter": (message(b"hello\n"), "multipart userData has no closing boundary"),
    "another boundary": (message(WHOLE.replace(b"--x", b"--xy")), "multipart userData has no closing boundary"),
    "no end": (message(WHOLE.replace(b"--x--", b"")), "multipart userData has no closing boundary"),
    "an end alone": (message(b"--x--\n\nhello\n--x--\n"), "multipart userData has no parts"),
    "nothing between": (message(b"--x\n--x--\n"), "multipart userData part 1 cannot be read"),
    "a part with a broken header": (
        message(WHOLE.replace(b"--x--", b"--x\nsecret\n\nhello\n--x--")),
        "multipart userData part 2 cannot be read",
    ),
    "a part without its blank line": (
        message(b"--x\nContent-Type: text/plain\n--x--"),
        "multipart userData part 1 cannot be read",
    ),
    "base64 that is none": (
        message(b"--x\nContent-Transfer-Encoding: base64\n\nc2Vj!cmV0\n--x--"),
        "multipart userData part 1 cannot be read",
    ),
    "base64 cut short": (
        message(b"--x\nContent-Transfer-Encoding: base64\n\nc2VjcmV\n--x--"),
        "multipart userData part 1 cannot be read",
    ),
    "an unknown encoding": (
        message(b"--x\nContent-Transfer-Encoding: x-uuencode\n\nsecret\n--x--"),
        "multipart userData part 1 cannot be read",
    ),
    "a message encoded as a whole": (
        b"Content-Transfer-Encoding: base64\n" + message(base64.b64encode(WHOLE)),
        "multipart userData cannot be encoded as a whole",
    ),
    "a broken message inside": (
        message(b"--x\nContent-Type: multipart/mixed; boundary=y\n\nsecret\n--x--"),
        "multipart userData has no closing boundary",
    ),
    "a message without boundary inside": (
        message(b"--x\nContent-Type: multipart/mixed\n\nsecret\n--x--"),
        "multipart userData boundary missing",
    ),
}


@pytest.mark.parametrize(("data", "reason"), FLAWED.values(), ids=FLAWED)
def test_what_is_not_whole_is_refused_and_not_repeated(data: bytes, reason: str) -> None:
    told = reason_of(data)
    assert told == reason or (reason is UNSUPPORTED and told.startswith(reason))
    assert "secret" not in told


def test_packed_user_data_is_read_inside() -> None:
    assert parts(packed(CONFIG)) == parts(CONFIG)
    assert parts(packed(BY_HAND)) == TWO
    assert (is_gzip(packed(CONFIG)), is_gzip(CONFIG), is_gzip(b"")) == (True, False, False)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (packed(b"secret"), UNSUPPORTED),
        (packed(b""), UNSUPPORTED),
        (packed(packed(CONFIG)), UNSUPPORTED),
        (b"\x1f\x8b", "gzip userData cannot be unpacked"),
        (b"\x1f\x8bsecret that is no gzip at all", "gzip userData cannot be unpacked"),
        (packed(CONFIG)[:-1], "gzip userData cannot be unpacked"),
        (packed(CONFIG) + b"more", "gzip userData cannot be unpacked"),
        (packed(CONFIG)[:-8] + bytes(8), "gzip userData cannot be unpacked"),
    ],
)
def test_packed_user_data_is_refused_as_its_inside_would_be(data: bytes, reason: str) -> None:
    assert reason_of(data).startswith(reason)


def test_a_bomb_does_not_go_off() -> None:
    fits = b"#cloud-config\n".ljust(MAX_UNPACKED, b"#")
    assert len(parts(packed(fits))[0].content) == MAX_UNPACKED
    for size in (MAX_UNPACKED + 1, 64 * MAX_UNPACKED):
        bomb = gzip.compress(fits.ljust(size, b"#"), mtime=0)
        assert reason_of(bomb) == "gzip userData has more than 1048576 bytes when it is unpacked"


def test_there_is_a_limit_to_how_many_lines_there_are() -> None:
    for data in (b"#cloud-config\n", b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"):
        lines = data + b"\n" * (MAX_LINES - data.count(b"\n"))
        for each in (lines + b"\n", packed(lines + b"\n")):
            assert reason_of(each) == "userData has more than 20000 lines"
    assert len(parts(b"#cloud-config\n" + b"\n" * (MAX_LINES - 1))) == 1


def test_only_the_first_parameters_of_a_header_count() -> None:
    for others, count in ((b"; a=b" * 15, 1), (b"; a=b" * 16, 0)):
        data = message(WHOLE, b"multipart/mixed" + others + b"; boundary=x")
        if count:
            assert len(parts(data)) == count
        else:
            assert reason_of(data) == "multipart userData boundary missing"


TOO_MANY = "multipart userData has more than 256 parts"


def test_there_is_a_limit_to_how_many_parts_there_are() -> None:
    assert len(parts(message(b"--x\n\n\n" * 256 + b"--x--"))) == 256
    assert reason_of(message(b"--x\n\n\n" * 257 + b"--x--")) == TOO_MANY
    twenty = b"--x\nContent-Type: multipart/mixed; boundary=y\n\n" + b"--y\n\nhi\n" * 20 + b"--y--\n"
    assert len(parts(message(twenty * 12 + b"--x--"))) == 240
    assert reason_of(message(twenty * 13 + b"--x--")) == TOO_MANY


def test_a_message_made_to_be_slow_is_not() -> None:
    """A reader that checks each line against each level, or scans again from each delimiter, would take minutes."""
    lines = message(b"--x\n\n" + b"--x y\n" * 19_000 + b"\n--x--")
    assert len(parts(packed(lines))) == 1
    assert reason_of(packed(message(b"--x\n\n" * 9_000 + b"--x--"))) == TOO_MANY
    deep = b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (each, each) for each in range(5000))
    assert reason_of(packed(b"MIME-Version: 1.0\n" + deep)) == "multipart userData has no closing boundary"


@given(st.binary() | st.builds(message, st.binary()) | st.binary().map(packed))
def test_any_bytes_have_parts_or_a_reason(data: bytes) -> None:
    with contextlib.suppress(UnrecognizedUserData):
        assert len(parts(data)) == len(parts(data, deepest=DEEPEST)) <= 256


LINES = [b"--x", b"--x--", b"--y", b"--y--", b"", b"hello", b"Content-Type: text/plain", b"A: b", b" c"]
MORE_LINES = [b"Content-Type: multipart/mixed; boundary=y", b"Content-Transfer-Encoding: base64", b"aGVsbG8="]


@given(st.lists(st.sampled_from([*LINES, *MORE_LINES]), max_size=20))
def test_what_is_read_is_what_pythons_mail_library_reads(lines: list[bytes]) -> None:
    data = message(b"\n".join(lines))
    try:
        read = parts(data)
    except UnrecognizedUserData:
        return
    known = [part for part in BytesParser().parsebytes(data).walk() if part.get_content_maintype() != "multipart"]
    assert [part.content for part in read] == [each.get_payload(decode=True) for each in known]
