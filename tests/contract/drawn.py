"""What a random walk on a store is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from msgspec import structs

from crawlspace.decision import Reason
from crawlspace.document import Document, Part
from crawlspace.model import Held, Queue, Source, State
from crawlspace.state.changes import NOWHERE
from crawlspace.state.depths import DepthMark
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.site_health import Health
from tests.contract.conftest import NOW, key, new

PLACES = [
    f"{host}.example{port}/{path}" for host, port in (("a", ""), ("a", ":81"), ("b", "")) for path in ("", "x", "yy", "z/z")
]
# Two URLs of one key, as may happen among very many.
TWIN = structs.replace(new("a.example/twin"), key=key(PLACES[0]))
SITES = sorted({new(place).site for place in PLACES})

places = st.sampled_from(PLACES)
sources = st.sampled_from(list(Source))
inherited_all = st.sampled_from([None, None, '{"c":"red"}', '{"c":"blue"}', '{"c":"red","d":"1"}'])
queues = st.builds(Queue, sources, st.integers(-1, 1))
new_urls = st.one_of(
    st.just(TWIN),
    st.builds(
        lambda url, inherited, depth_from, **given: structs.replace(
            new(url, **given), inherited=inherited, depth_from=depth_from
        ),
        places,
        inherited_all,
        st.integers(0, 8),
        source=sources,
        shift=st.integers(-2, 2),
        depth=st.integers(0, 6),
        redirects=st.integers(0, 2),
    ),
)
new_ones = st.lists(new_urls, max_size=2)
links = st.none() | st.lists(places.map(key), max_size=4)
fields = st.sampled_from([{}, {"c": "red"}, {"c": "blue", "d": "1"}, {"c": "green"}])
times = st.integers(0, 50).map(lambda seconds: NOW + seconds)
checksums = st.sampled_from([None, b"one", b"one", b"two", b"three", b"near one", b"near both", b"near two", b"far"])


def _signature(simhash: int) -> bytes:
    return simhash.to_bytes(8, "little") + (500).to_bytes(4, "little") + bytes(128)


SIGNATURES = {
    b"one": _signature(0),
    b"near one": _signature(0b11),
    b"near both": _signature(0b1111),
    b"near two": _signature(0b111111 | 1 << 50),
    b"two": _signature(0b11111111),
    b"far": _signature((1 << 64) - 1),
}
"""By checksum: within a distance of 3, each is near its neighbour only, and `three` and `far` near none."""
canonicals = st.none() | places.map(key)
seldom = st.integers(0, 4).map(lambda n: n == 0)
healths = st.dictionaries(
    st.sampled_from([*SITES, "new.example:80"]),
    st.builds(Health, st.integers(0, 9), st.integers(1, 7), shown=st.sampled_from([(), (0, 7), (7, 7, 9)])),
    max_size=2,
)
parts = st.sampled_from(
    [[], [], [Part("k", "K", ["J", "K"], "s", "a", {"c": "red"})], [Part("k", text="t"), Part("l\0", text="\0")]]
)
given_documents = st.builds(
    Document,
    st.just(""),
    title=st.sampled_from("pqr"),
    text=st.sampled_from(["s", "t", "u", "", "u\0{}"]),
    fields=fields.map(dict),
    markdown=st.sampled_from(["", "", "# s\n"]),
    parts=parts.map(list),
)
documents = st.none() | given_documents

depths = st.dictionaries(
    st.integers(0, 15),
    st.tuples(st.integers(0, 6), st.integers(0, 8), st.none() | st.integers(1, 3), st.booleans()),
    max_size=5,
)
"""By a number for a URL: depth, page, orphaned, and whether the depth before is out of date."""
depth_marks = st.dictionaries(
    places.map(key), st.none() | st.builds(DepthMark, st.integers(0, 8), st.integers(-1, 3)), max_size=3
)

archived = st.sampled_from([None, 1, (7 << 32) + 300, (1 << 52) + 5])
new_places = st.sampled_from([None, NOWHERE, 1, (7 << 32) + 300, (1 << 52) + 5])
"""Places in the archive, the largest ones among them."""

refused_links = st.lists(
    st.builds(
        RefusedLink,
        st.sampled_from([Reason.DOMAIN, Reason.LINK_DEPTH]),
        st.sampled_from(["x.example", ""]),
        st.sampled_from(["http://x.example/1", "http://x.example/2"]),
        st.just(0),
        st.sampled_from([None, "crawl.rules:1"]),
    ),
    max_size=3,
)
"""Without their page."""


@dataclass
class Lying:
    """What lies in a store: ids and checksums."""

    documents: set[int]
    checksums: set[bytes]
    inheritance: set[int]


@st.composite
def edits(draw: st.DrawFn) -> dict[str, object]:
    """Fields of a URL's state that an outcome may change; drawn beforehand, made to both stores' copies."""
    return {
        "state": draw(st.sampled_from(list(State))),
        "status": draw(st.sampled_from([None, 200, 404, 503, 740, 760, 761, 2004])),
        "source": draw(sources),
        "depth": draw(st.integers(0, 6)),
        "redirects": draw(st.integers(0, 2)),
        "rank": draw(st.integers(1, 9)),
        "next_fetch": draw(st.none() | times),
        "fetched_at": draw(st.none() | times),
        "inherited": draw(inherited_all),
        "retries": draw(st.integers(0, 1)),
        "checksum": draw(checksums),
        "canonical": draw(canonicals),
        "held": draw(st.sampled_from([None, None, *Held])),
        "held_mark": draw(st.integers(0, 2)),
        "etag": draw(st.none() | st.just('"e"')),
        "interval_s": draw(st.none() | st.just(60)),
        "rules": draw(st.integers(0, 2)),
        "errors": draw(st.integers(0, 2)),
        "shift": draw(st.integers(-1, 1)),
        "requested_by": draw(st.booleans()),
        "fields_mark": draw(st.integers(0, 2)),
        "refused": draw(st.sampled_from([None, None, "d3", "d1e12", "l2"])),
        "archived": draw(new_places),
        "orphaned": draw(st.sampled_from([None, None, None, 1, 2])),
        "detail": draw(st.sampled_from([None, None, "connection refused", "das Zertifikat für é ist abgelaufen"])),
        "history": draw(st.sampled_from([None, None, b"\0\xff", bytes(range(200, 256))])),
    }
