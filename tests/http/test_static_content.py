"""Content that all clients share: one copy of it, compressed once."""

from remuda.http.static_content import StaticContent

CONTENT = b"x" * 10_000
GZIP = {b"accept-encoding": b"gzip, br"}


def test_m24_all_responses_share_one_copy_and_content_is_compressed_once() -> None:
    content = StaticContent(CONTENT, ((b"content-type", b"text/plain"),))
    assert content.response({}).body is content.response({b"accept-encoding": b"gzip;q=0"}).body is CONTENT
    assert content.response(GZIP).body is content.response(GZIP).body
    assert len(content.response(GZIP).body) < 100  # type: ignore[arg-type]  # it is bytes


def test_content_that_a_client_has_in_another_coding_is_sent_again() -> None:
    content = StaticContent(CONTENT, ())
    etag = dict(content.response({}).headers)[b"etag"]
    assert content.response({b"if-none-match": etag}).status == 304
    assert content.response({b"if-none-match": b"W/" + etag}).status == 304
    assert content.response({b"if-none-match": b"*"}).status == 304
    assert content.response({b"if-none-match": etag} | GZIP).status == 200
