"""A stored page for a frame of the console: what would run or load anything is taken out, and the browser is told to allow neither.

The policy of the response is what protects (`guard.FRAMED`). Elements are taken out for what policies do not govern, such as connections that a
page asks for in advance, and so that no link leads out of the frame.
"""

from __future__ import annotations

from lxml import etree, html

MOST_BYTES = 5_000_000
"""Of a page that is shown."""
_DROPPED = (
    "script link meta base iframe frame frameset object embed applet portal template noscript audio video source track picture img svg math"
).split()
_ATTRIBUTES = frozenset(
    "href src srcset action formaction ping background poster data cite longdesc manifest target autofocus http-equiv".split()
)
_UTF8 = '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'


def framed_page(markup: str) -> str | None:
    """Return a page without all that runs, loads or leads anywhere; None for markup that cannot be read."""
    try:
        parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
        root = html.document_fromstring(markup.encode("utf-8", "replace")[:MOST_BYTES], parser=parser)
        etree.strip_elements(root, *_DROPPED, with_tail=False)
        for element in root.iter(etree.Element):
            for name in list(element.attrib):
                plain = str(name).rpartition("}")[2].rpartition(":")[2].lower()
                if plain in _ATTRIBUTES or plain.startswith("on"):
                    del element.attrib[name]
        written: str = html.tostring(root, encoding="unicode")
    except (etree.LxmlError, ValueError, AssertionError, RecursionError):
        return None
    return _UTF8 + written
