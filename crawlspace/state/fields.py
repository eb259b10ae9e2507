"""The fields of a URL (`UrlState`), by how a change treats them; the stores derive their statements and records from these.

A new field is written by a change, unless it is named here. It needs a column in `sqlite/schema.py` and an element at the end of
`redis/encoding.Row`.
"""

from __future__ import annotations

from crawlspace.model import UrlState

FIELDS = UrlState.__struct_fields__
FOUND = ("id", "key", "url", "site", "redirects", "rank", "host_as_written", "discovered_at")
"""Set when a URL is found; they never change."""
COMPUTED = ("lease_until", "indexed", "duplicate_of", "inherited", "depth_from", "ordered")
"""Computed by the store."""
MERGED = ("depth", "checksum", "canonical", "simhash", "archived")
"""Those of a change and those that are stored are merged (`Change`)."""
WRITTEN = tuple(name for name in FIELDS if name not in {*FOUND, *COMPUTED, *MERGED})
"""Written as in a change."""
