"""Writes documents as JSON lines, several times faster than field by field: there is one for each page."""

from __future__ import annotations

from typing import Any

import msgspec
from scrapy.exporters import JsonLinesItemExporter

from crawlspace.model import Document

_ENCODER = msgspec.json.Encoder()


class JsonLinesExporter(JsonLinesItemExporter):
    """As Scrapy's. A Document that is to be exported whole, in UTF-8, is encoded at once, and no character costs an item."""

    def __init__(self, file: Any, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self._whole = self.fields_to_export is None and not self.indent and self.encoding == "utf-8"

    def export_item(self, item: Any) -> None:
        if self._whole and type(item) is Document:
            self.file.write(_ENCODER.encode(item) + b"\n")
            return
        line = self.encoder.encode(dict(self.get_serialized_fields(item))) + "\n"
        # own parsing may leave halves of surrogate pairs
        self.file.write(line.encode(self.encoding or "utf-8", "replace"))
