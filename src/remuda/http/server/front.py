"""The front page of a process: whether it is ready, what runs here, and where to look."""

from collections.abc import Callable, Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from remuda.http.replies import Page
from remuda.http.server.mounts import Mounted
from remuda.version import ServiceDescriptor

FrontPage = Callable[[Sequence[tuple[str, str]]], Page]
"""Renders the page, with what speaks against being ready: which part it is, and what is wrong with it."""


def front_page(description: ServiceDescriptor, pages: Mapping[str, str], mounted: Sequence[Mounted]) -> FrontPage:
    """Return what renders the page. `pages` are those of the process: what each is about, by its path."""
    environment = Environment(
        loader=PackageLoader("remuda.http.documents"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("front.html")

    def render(problems: Sequence[tuple[str, str]]) -> Page:
        title = "Remuda is not ready" if problems else "Remuda is ready"
        return Page(
            template.render(title=title, problems=problems, version=str(description), pages=pages, mounted=mounted)
        )

    return render
