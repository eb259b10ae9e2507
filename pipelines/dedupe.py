"""Gives each document the checksum by which equal documents are known."""

from __future__ import annotations

from crawlspace.runtime.pipelines.dedupe import BaseFingerprint


class Fingerprint(BaseFingerprint):
    """Turns an item of any type into the document it is for the index, and fingerprints its text."""
