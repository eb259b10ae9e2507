"""What a store remembers of rules and settings is equal in each process: Python orders sets of texts differently in each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.command_line import ROOT

_PROGRAM = """
import sys
from pathlib import Path
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import build_rediscovery, build_space, hash_of
from tests.unit.config.conftest import settings

own = {
    "CRAWLSPACE_SITES": {
        "a.example": {"max_path_depth": 2, "url_drop_parameters": ["a", "b", "c"], "render": "auto", "follow": "links"},
        "b.example": {"login": {"type": "basic", "user": "u", "password": "env:P"}, "proxy": "http://p.example"},
    },
    "CRAWLSPACE_SCHEMES": ["http", "https"],
    "CRAWLSPACE_LINK_TAGS": ["a", "img@src", "*@data-url"],
    "CRAWLSPACE_EXCLUSION_MARKS": ["googleoff"],
    "CRAWLSPACE_META_FIELDS": {"a": "b", "c": ["d", "e"]},
    "CRAWLSPACE_CONVERTERS": {"image/png": "ocr {file}", "image/gif": "ocr {file}"},
}
demo = load_collection("demo", settings(Path(sys.argv[1]), **own))
space = build_space(demo)
print(demo.content_hash, hash_of(demo, space), build_rediscovery(demo, space).checks)
print(demo.sites.logins_hash, demo.proxies.content_hash)
"""


def test_hashes_are_equal_in_each_process(collections: Path) -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(collections)],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "P": "x"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1, printed
