"""A small web that is crawled over a store of each kind, whose runs end only when the steps of a refresh are made, too."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawlspace.crawl.depths.end_of_run import end_run
from crawlspace.crawl.engine import Engine
from crawlspace.state.store import Store
from tests.unit.crawl.test_engine import HOME, Web


def at(text: str) -> float:
    """Return a time in UTC, as in "2026-05-04 02:00"."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


class RefreshedWeb(Web):
    """Starts on Monday, 2026-05-04, at noon."""

    def __init__(self, folder: Path, store: Store, **settings: object) -> None:
        super().__init__(folder, store, CRAWLSPACE_TIMEZONE="UTC", **settings)
        self.clock.set(at("2026-05-04 12:00"))
        names = [f"{HOME}{number}" for number in range(4)]
        self.pages = {HOME: "home", **{name: name for name in names}}
        self.links = {HOME: names}

    def go_to(self, text: str) -> None:
        """Let time pass."""
        self.clock.advance(at(text) - self.clock.now())

    def run(self, text: str = "", /, **settings: object) -> list[str]:
        """Crawl at a time, with these settings from now on; return the paths that were asked for, sorted."""
        if text:
            self.go_to(text)
        self.settings |= settings
        engine = self.open().engine
        self.finish(engine)
        assert engine.is_done()
        end_run(engine)
        engine.close()
        return self.paths

    def finish(self, engine: Engine) -> None:
        """Fetch until there is nothing to do, steps included; what was asked for is in `asked`."""
        self.asked = []
        self.work_on(engine)

    def work_on(self, engine: Engine) -> None:
        engine._update()
        self.work(engine)
        while engine.has_steps:
            self.clock.advance(0.2)
            self.work(engine)

    @property
    def paths(self) -> list[str]:
        return sorted(url.removeprefix(HOME) for url, _ in self.asked)


ALL = ["", "0", "1", "2", "3"]


@pytest.fixture
def web(tmp_path: Path, store: Store) -> RefreshedWeb:
    return RefreshedWeb(tmp_path, store)
