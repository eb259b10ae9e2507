"""Search for secrets in all that crawls leave behind: `python -m tests.long.secrets`.

Each kind of secret is planted, sites fail in several ways, code fails, and a crawl crashes, at LOG_LEVEL DEBUG. Then logs, the output of
commands, the data folder (the archive decompressed), Redis, the process list, what sinks got and what other hosts were sent is searched for
each of them: as it is, URL-encoded, JSON-escaped, and in base64 at all alignments. Exit status 1 if one is found where it may not be.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measure import BenchmarkFailed, Row, finish, say
from tests.conftest import Project
from tests.planted.scene import SENT, planted
from tests.planted.search import table

_NAME = "secrets"


def main() -> list[Row]:
    rows = []
    for shares in (False, True):
        store = "Redis" if shares else "SQLite"
        with (
            tempfile.TemporaryDirectory(prefix="bench-secrets-") as folder,
            planted(Project(Path(folder), {}), shares=shares) as scene,
        ):
            size = sum(len(one) for contents in scene.places.values() for one in contents)
            say(f"{store}: {size:,} bytes searched\n{table(scene.found(), scene.places, scene.secrets)}")
            unwanted = scene.unwanted()
            if unused := SENT - scene.used:
                raise BenchmarkFailed(f"nothing is proved, because nobody was sent {', '.join(sorted(unused))}")
            for (place, kind), number in unwanted.items():
                say(f"{store}: {kind} is {number} times in {place}")
            rows.append(Row(_NAME, f"secrets found over {store}", f"{sum(unwanted.values()):,}", "0", not unwanted))
    return rows


if __name__ == "__main__":
    sys.exit(finish(main))
