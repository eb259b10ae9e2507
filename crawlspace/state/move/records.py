"""What a collection consists of, as records that are the same whatever store they come from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from crawlspace.model import Document, Op, UrlState
from crawlspace.state.site_health import Health
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry

NOT_MOVED = frozenset({"moving", "born", "durable", "upgrading", "sites_counted"})
"""Odds and ends that are about the store and not about what is in it."""
PARKED = 2
"""The last kind of the orders of a sink, after deletes and pushes that wait."""

Place = tuple[str, int, int]
"""Where a record stands among those of its stage."""
FIRST: Place = ("", 0, 0)
"""Before all of them."""


class Stage(StrEnum):
    """The kinds of records, in the order in which they are moved; the value names them for people."""

    SITES = "sites"
    URLS = "URLs"
    ORDERS = "index orders"
    REST = "odds and ends"


@dataclass(slots=True)
class SiteRecord:
    """What is known of a site, without its URLs; only of those of which anything is."""

    site: str
    wait_until: int | None = None
    health: Health | None = None
    robots: list[RobotsEntry] = field(default_factory=list)
    wait_s: int = 0
    unreachable: UnreachableSite | None = None

    @property
    def place(self) -> Place:
        return self.site, 0, 0

    @property
    def size(self) -> int:
        return sum(len(entry.body) for entry in self.robots)


@dataclass(slots=True)
class UrlRecord:
    state: UrlState
    """Not leased."""
    links: bytes = b""
    """Keys of eight bytes each, least significant first."""
    document: Document | None = None
    """Without URL, text and duplicates."""
    text: str | None = None
    """Of its checksum; where several URLs have that, with the one that stands for their group."""
    aside_in: bytes | None = None
    """The group of the canonical page for which it stands aside."""
    incumbent: bool = False
    """It stands for its group although another one has a better rank."""
    left: bool = False
    """It has left its document in the index."""
    link_metadata: str | None = None
    inherited_from: int | None = None
    inherited_mark: int | None = None
    """When it was last due for what is handed to it, see `handed.due_at`."""

    @property
    def place(self) -> Place:
        return "", self.state.id, 0

    @property
    def size(self) -> int:
        return len(self.links) + len(self.text or "")


@dataclass(slots=True)
class OrderRecord:
    sink: str
    number: int
    op: Op
    id: int
    url: str
    reason: str | None = None
    """Why it is parked."""
    document: Document | None = None
    """What is to be pushed, whatever becomes of the URL; without its URL."""

    @property
    def kind(self) -> int:
        return PARKED if self.reason is not None else int(self.op is Op.PUSH)

    @property
    def place(self) -> Place:
        return self.sink, self.kind, self.number

    @property
    def size(self) -> int:
        return len(self.document.text) if self.document is not None else 0


@dataclass(slots=True)
class RestRecord:
    """What there is once: the last numbers given out, the counts of refusals, and the odds and ends."""

    last_id: int
    last_order: int
    refusals: dict[str, int]
    meta: dict[str, str]

    @property
    def place(self) -> Place:
        return "all", 0, 0

    @property
    def size(self) -> int:
        return 0


Record = SiteRecord | UrlRecord | OrderRecord | RestRecord


def bare(document: Document) -> Document:
    """Return a document without what is kept elsewhere."""
    return replace(document, url="", text="", duplicates=[])
