"""The front page of a process: what runs here, and where to look."""

from collections.abc import Mapping, Sequence
from html import escape

from remuda.http.edge.mounts import Mounted
from remuda.version import ServiceDescriptor

__all__ = ["front_page"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Remuda</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; }}
td {{ padding: 0.2rem 1.5rem 0.2rem 0; vertical-align: top; }}
</style>
</head>
<body>
<h1>Remuda</h1>
<p>{version}</p>
<h2>APIs</h2>
{apis}
<h2>This process</h2>
<table>
{pages}
</table>
</body>
</html>
"""
_NO_APIS = "<p>None is mounted yet.</p>"


def front_page(description: ServiceDescriptor, pages: Mapping[str, str], mounted: Sequence[Mounted]) -> bytes:
    """Render the page."""
    return _PAGE.format(
        version=escape(str(description)),
        apis=_apis(mounted) if mounted else _NO_APIS,
        pages="\n".join(_row(path, path, about) for path, about in pages.items()),
    ).encode()


def _apis(mounted: Sequence[Mounted]) -> str:
    rows = [_row(f"{one.prefix}/docs", one.table.title, one.table.description) for one in mounted]
    return "\n".join(["<table>", *rows, "</table>"])


def _row(link: str, title: str, about: str) -> str:
    return f'<tr><td><a href="{escape(link)}">{escape(title)}</a></td><td>{escape(about)}</td></tr>'
