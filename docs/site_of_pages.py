"""An extension of Sphinx: the groups of docs/index.md become the table of contents, and blocks of Mermaid become pictures.

The pages stay plain Markdown, which repository views show as well.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import mermaidx
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

DRAWING = {"theme": "neutral", "htmlLabels": False, "flowchart": {"htmlLabels": False, "wrappingWidth": 400}}
"""Labels are text of SVG: an image shows no HTML inside it."""


class Mermaid(SphinxDirective):
    """A picture of a block of Mermaid, drawn once for each content and kept in build/diagrams. Its `accTitle` is the text for who can't see it."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        source = "\n".join(self.content)
        title = re.search(r"^\s*accTitle: *(.+)$", source, re.MULTILINE)
        if title is None:
            raise self.error("a picture needs a line `accTitle: …` that says what it shows")
        name = hashlib.sha256(f"{version('mermaidx')} {DRAWING} {source}".encode()).hexdigest()[:16]
        picture = Path(self.env.srcdir).parent / "build" / "diagrams" / f"{name}.svg"
        if not picture.exists():
            self._draw(source, picture)
        folder = (Path(self.env.srcdir) / self.env.docname).parent
        return [nodes.image(uri=os.path.relpath(picture, folder), alt=title[1])]

    def _draw(self, source: str, picture: Path) -> None:
        try:
            drawn = mermaidx.render(source, config=DRAWING).svg()
        except Exception as error:
            raise self.error(f"the picture cannot be drawn: {error}") from error
        picture.parent.mkdir(parents=True, exist_ok=True)
        part = picture.with_suffix(f".{os.getpid()}")
        part.write_text(drawn, encoding="utf-8")
        part.replace(picture)


def table_of_contents(index: str) -> Iterator[str]:
    """Return a hidden toctree for each section of docs/index.md whose table names pages, in their order."""
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        caption, _, text = section.partition("\n")
        if pages := re.findall(r"^\| \[[^\]]+\]\(([\w-]+)\.md\)", text, re.MULTILINE):
            yield "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


def _prepare(_: Sphinx, page: str, content: list[str]) -> None:
    """Add the table of contents, and have Markdown outside of this folder offered as a file: it is no page of the site."""
    if page == "index":
        content[0] += "".join(table_of_contents(content[0]))
    content[0] = re.sub(r"\]\((\.\./[^)\s#]+\.md)\)", r"](<path:\1>)", content[0])


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("mermaid", Mermaid)
    app.connect("source-read", _prepare)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
