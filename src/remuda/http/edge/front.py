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
:root {{ color-scheme: light dark; --edge: color-mix(in srgb, currentColor 18%, transparent); }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }}
h1 {{ margin: 0; }}
h2 {{ margin: 2.5rem 0 0.75rem; font-size: 1.1rem; }}
.quiet {{ opacity: 0.7; margin: 0.25rem 0 0; }}
.api {{ border: 1px solid var(--edge); border-radius: 0.5rem; padding: 0.75rem 1rem; margin: 0 0 0.75rem; }}
.api p {{ margin: 0.25rem 0; }}
.api nav {{ display: flex; gap: 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
td {{ padding: 0.35rem 1.5rem 0.35rem 0; vertical-align: top; border-top: 1px solid var(--edge); }}
</style>
</head>
<body>
<h1>Remuda</h1>
<p>A compute cloud for many tenants.</p>
<p class="quiet">{version}</p>
<h2>Services</h2>
{apis}
<h2>This process</h2>
<table>
{pages}
</table>
</body>
</html>
"""
_API = """<section class="api">
<strong>{title}</strong> <code>{prefix}</code>
<p>{about}</p>
<nav><a href="{prefix}/docs">Documentation</a><a href="{prefix}/openapi.json">OpenAPI</a></nav>
</section>"""
_NO_APIS = "<p>None is mounted yet.</p>"


def front_page(description: ServiceDescriptor, pages: Mapping[str, str], mounted: Sequence[Mounted]) -> bytes:
    """Render the page."""
    return _PAGE.format(
        version=escape(str(description)),
        apis="\n".join(map(_api, mounted)) if mounted else _NO_APIS,
        pages="\n".join(_row(path, about) for path, about in pages.items()),
    ).encode()


def _api(one: Mounted) -> str:
    about = one.table.description.partition("\n")[0]
    return _API.format(title=escape(one.table.title), prefix=escape(one.prefix), about=escape(about))


def _row(path: str, about: str) -> str:
    return f'<tr><td><a href="{escape(path)}">{escape(path)}</a></td><td>{escape(about)}</td></tr>'
