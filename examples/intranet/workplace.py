"""The folder a demonstration works in, and running Scrapy's commands there as a user would."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from examples.intranet.sites import Ports

PROJECT = Path(__file__).resolve().parents[2]
_TEMPLATES = Path(__file__).with_name("collections")


@dataclass(frozen=True, slots=True)
class Workplace:
    """`collections/` with the ports put in, `data/` for what the crawls write, and the exports beside them."""

    folder: Path

    @property
    def collections(self) -> Path:
        return self.folder / "collections"

    @property
    def data(self) -> Path:
        return self.folder / "store"

    def items(self, collection: str) -> Path:
        return self.folder / f"items-{collection}.jsonl"

    def prepare(self, ports: Ports) -> None:
        """Write the collections' files for these ports. What was crawled before stays."""
        shutil.rmtree(self.collections, ignore_errors=True)
        for template in sorted(_TEMPLATES.glob("*/*.*")):
            target = self.collections / template.parent.name / template.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(ports.rewrite(template.read_text(encoding="utf-8")), encoding="utf-8")

    def variables(self) -> dict[str, str]:
        """Return the two environment variables that point Scrapy's commands at this folder."""
        return {"CRAWLSPACE_COLLECTIONS_DIR": str(self.collections), "CRAWLSPACE_DATA_DIR": str(self.data)}

    def export_line(self) -> str:
        """Return what a user types once so that the commands shown work in their shell."""
        return ". .venv/bin/activate; export " + " ".join(
            f"{name}={shlex.quote(shown(Path(value)))}" for name, value in self.variables().items()
        )

    def scrapy(self, *words: str, capture: bool = False, timeout_s: float = 55) -> subprocess.CompletedProcess[str]:
        """Run a Scrapy command in the project's folder; its output is shown, or returned with `capture`."""
        return subprocess.run(
            [sys.executable, "-m", "scrapy", *words],
            cwd=PROJECT,
            env={**os.environ, **self.variables(), "PYTHONUTF8": "1"},
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.PIPE if capture else None,
            text=True,
            encoding="utf-8",
            timeout=timeout_s,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a Scrapy command that runs until it is ended; its output is shown."""
        return subprocess.Popen(
            [sys.executable, "-m", "scrapy", *words],
            cwd=PROJECT,
            env={**os.environ, **self.variables(), "PYTHONUTF8": "1"},
            text=True,
        )


def shown(path: Path) -> str:
    """Return a path as short as a user in the project's folder would write it."""
    try:
        return str(path.relative_to(PROJECT))
    except ValueError:
        return str(path)
