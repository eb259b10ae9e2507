"""The queries of docs/searching-servers.md, and the documents that they are tried on."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from crawlspace.document import Document, IndexOrder, Op
from tests.command_line import ROOT
from tests.search_server import sink_of

SITE = "http://www.example.com"
RECENTLY = (datetime.now(UTC) - timedelta(days=20)).date().isoformat()
HTML = "text/html"

DOCUMENTS = (
    Document(
        f"{SITE}/handbook/leave", "Annual leave", language="en", text="Ask for annual <leave> here", content_type=HTML,
        modified="2020-02-01", duplicates=[f"{SITE}/handbook/leave?print=1"],
    ),
    Document(f"{SITE}/handbook/old/leave", "Annual leave of 2024", language="en-GB", text="Ask for annual leave here, please", modified="2024-02-01T10:00:00Z", content_type=HTML),
    Document(f"{SITE}/handbook/new", "News", language="en", text="Ask for annual leave here, please", modified=RECENTLY, content_type="application/pdf"),
    Document(f"{SITE}/handbook/undated", "No date", language="en", text="Ask for annual leave here, please"),
    Document("http://de.example.com/urlaub", "Urlaub", language="de", text="Anträge auf Urlaub"),
    Document("http://de.example.com/reise", "Reisen", language="de", text="Anträge auf Reisen"),
    Document("http://tlh.example.com/", "Urlaub", language="tlh", text="jatlh antrag"),
)  # fmt: skip
OF_ANOTHER = Document(
    f"{SITE}/handbook/old/other", "Leave", language="en", text="leave", modified="2024-02-02", content_type=HTML
)
IN_SOLR = "in Solr"
"""How the headings of queries for Solr end."""


def fill(options: dict[str, object], folder: Path) -> None:
    """Send the documents to a server, from two collections."""
    for collection, documents in (("handbook", DOCUMENTS), ("another", (OF_ANOTHER,))):
        with closing(sink_of(folder, options, collection=collection)) as sink:
            orders = [IndexOrder(number, Op.PUSH, one.url, one, number) for number, one in enumerate(documents, 1)]
            sent = sink.send(orders)
            assert (list(sent.refused), list(sent.later)) == ([], [])


def examples() -> list[tuple[str, Any]]:
    """Heading and body of each query."""
    text = (ROOT / "docs" / "searching-servers.md").read_text(encoding="utf-8")
    found = []
    for section in re.split(r"\n##+ ", text)[1:]:
        heading = section.partition("\n")[0]
        found += [(heading, json.loads(body)) for body in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]
    return found
