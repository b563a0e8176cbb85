"""Which of cloud-init's formats a payload has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.cloudinit.multipart import FIRST_LINES, UnrecognizedUserData, content_type_of, unsupported

KNOWN = [
    (b"#cloud-config", "text/cloud-config"),
    (b"#cloud-config\n", "text/cloud-config"),
    (b"#cloud-config\r\nhostname: a", "text/cloud-config"),
    (b"#cloud-config  and a remark\nhostname: a", "text/cloud-config"),
    (b"#cloud-config-archive\n- content: a", "text/cloud-config-archive"),
    (b"#cloud-config-jsonp\n[]", "text/cloud-config-jsonp"),
    (b"#!/bin/sh\n", "text/x-shellscript"),
    (b"#! /usr/bin/env python3", "text/x-shellscript"),
    (b"#cloud-boothook\n#!/bin/sh", "text/cloud-boothook"),
    (b"#include\nhttps://example.com/a", "text/x-include-url"),
    (b"#include https://example.com/a", "text/x-include-url"),
    (b"#include-once\nhttps://example.com/a", "text/x-include-once-url"),
    (b"#part-handler\nimport os", "text/part-handler"),
    (b"## template: jinja\n#cloud-config\n", "text/jinja2"),
    (b"## template: jinja \r\n#cloud-config\n", "text/jinja2"),
]

UNKNOWN = [
    *(b"", b"\n", b"hello", b"hostname: a", b"#", b"# cloud-config", b" #cloud-config", b"\n#cloud-config"),
    *(b"\xef\xbb\xbf#cloud-config", b"#cloud-configuration", b"#cloud-config:", b"#Cloud-Config", b"#cloud-boothooks"),
    *(b"#includes", b"## template:jinja", b"## template: jinja2", b"##template: jinja", b"\x00", b"\xff#!/bin/sh"),
    *(b"#cloud", b"#!"[:1], b"<powershell>", b"MZ\x90", b"\x7fELF"),
]


@pytest.mark.parametrize(("payload", "content_type"), KNOWN)
def test_the_first_line_tells_the_format(payload: bytes, content_type: str) -> None:
    assert content_type_of(payload) == content_type


def test_every_first_line_is_tried() -> None:
    assert {content_type for _, content_type in KNOWN} == set(FIRST_LINES.values())


@pytest.mark.parametrize("payload", UNKNOWN)
def test_another_first_line_tells_none(payload: bytes) -> None:
    assert content_type_of(payload) is None


@given(st.binary())
def test_any_bytes_have_a_format_or_none(payload: bytes) -> None:
    assert content_type_of(payload) in {None, *FIRST_LINES.values()}


def test_the_rejection_names_what_is_known() -> None:
    error = unsupported()
    assert isinstance(error, UnrecognizedUserData)
    assert error.reason.startswith(
        "unsupported userData format: first line must identify a cloud-init payload (#cloud-config, #!, "
    )
    assert all(line.decode() in error.reason for line in FIRST_LINES)
