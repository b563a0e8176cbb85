import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

from remuda.http.docs import FieldRow, field_rows, render_docs
from remuda.http.openapi import document
from remuda.http.routes import Table
from remuda.http.schema import ENCODED_TWICE
from tests.kit.sample_api.pipeline import ReferencePath, do_nothing, route, running, table

VOID = {"meta"}


class Outline(HTMLParser):
    """Checks that every element is closed, and gathers ids, links and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.ids += [named["id"] or ""] if "id" in named else []
        self.links += [named["href"] or ""] if tag == "a" else []
        self.loads += [tag] if tag in {"script", "link", "img", "iframe"} or "src" in named or "style" in named else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


HTML, POLICY = render_docs(document(table(), version="1.2.3"))
PAGE = HTML.decode()
OUTLINE = Outline(PAGE)


def test_the_page_is_well_formed_and_its_links_lead_somewhere() -> None:
    assert PAGE.startswith("<!doctype html>")
    assert OUTLINE.open == []
    assert len(set(OUTLINE.ids)) == len(OUTLINE.ids)
    assert {link.removeprefix("#") for link in OUTLINE.links} - set(OUTLINE.ids) == {"openapi.json", "/"}


def test_every_operation_is_shown_with_its_permission() -> None:
    for one in table().routes:
        assert one.name in OUTLINE.ids
        assert one.summary in OUTLINE.text
        assert one.path in OUTLINE.text
    assert "sample:horses create, in the organization" in OUTLINE.text
    assert "Everyone" in OUTLINE.text


def test_fields_and_parameters_are_shown() -> None:
    for shown in ("metadata.name", "spec.hoof.size", "organizationID", "[].age", "Idempotency-Key", "from 0, up to 60"):
        assert shown in OUTLINE.text
    assert ENCODED_TWICE in OUTLINE.text


def test_the_page_needs_nothing_but_itself() -> None:
    assert OUTLINE.loads == []
    assert "http" not in re.sub(r"<a [^>]*>", "", PAGE)
    (style,) = re.findall(r"<style>(.*?)</style>", PAGE, re.DOTALL)
    assert "prefers-color-scheme: dark" in style
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{allowed}'; frame-ancestors 'none'" == POLICY
    assert 'name="viewport"' in PAGE


def test_what_a_table_says_cannot_break_the_page() -> None:
    evil = route("GET", "/{reference}", "one", do_nothing, path_type=ReferencePath, description="<script>x</script>")
    html, _ = render_docs(document(Table("t", title="<b>", description="", routes=[evil]), version="1"))
    assert b"<script>" not in html
    assert b"&lt;script&gt;x" in html
    assert Outline(html.decode()).open == []


def test_a_schema_becomes_rows() -> None:
    components = {
        "Tree": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"enum": ["oak", "elm"], "description": "Which one."},
                "seeds": {"type": "array", "items": {"$ref": "#/components/schemas/Seed"}},
                "name": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
                "id": {"anyOf": [{"type": "string", "pattern": "^a$"}, {"type": "integer"}]},
            },
        },
        "Seed": {"type": "object", "properties": {"parent": {"$ref": "#/components/schemas/Seed"}}},
    }
    rows = list(field_rows({"$ref": "#/components/schemas/Tree"}, components))
    assert rows[:3] == [
        FieldRow("kind", "oak | elm", is_required=True, about="Which one."),
        FieldRow("seeds", "array of object", is_required=False, about=""),
        FieldRow("seeds[].parent", "object", is_required=False, about=""),
    ]
    assert rows[-2:] == [
        FieldRow("name", "string, at most 3 characters", is_required=False, about=""),
        FieldRow("id", "string, matching ^a$ or integer", is_required=False, about=""),
    ]
    assert len(rows) < 20, "what contains itself ends"


async def test_the_page_is_served_to_anybody(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        reply = await type(api.client)(app=api.api).get("/docs")
        assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert reply.headers["content-security-policy"] == POLICY
        assert b"<h1>Sample</h1>" in reply.body


async def test_m27_documents_of_an_api_take_the_rate_limit_of_the_address(tmp_path: Path) -> None:
    async with running(tmp_path, quota=2) as api:
        client = type(api.client)(app=api.api)
        assert [(await client.get(path)).status for path in ("/docs", "/openapi.json")] == [200, 200]
        for path in ("/docs", "/openapi.json", "/"):
            assert (await client.get(path)).status == 429
