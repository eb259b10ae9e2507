"""The metrics: each is named here once, with its type, its labels and what it means. docs/monitoring.md has the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

PREFIX = "crawlspace_"
COLLECTION = "collection"


class Metric(NamedTuple):
    """A metric. All have the label `collection` before the others."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    meaning: str

    def family(self) -> CounterMetricFamily | GaugeMetricFamily:
        """Return a family without samples, for a counter or a gauge."""
        of_kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        return of_kind(self.name, self.meaning, labels=(COLLECTION, *self.labels))


FETCHES = Metric("crawlspace_fetches_total", "counter", ("status",), "Fetches that ended, by status code.")
FETCH_SECONDS = Metric("crawlspace_fetch_seconds", "histogram", (), "Seconds that the fetches took that were sent.")
BYTES = Metric("crawlspace_bytes_total", "counter", (), "Bytes of the bodies that were received, as sent.")
REFUSED = Metric("crawlspace_refused_total", "counter", ("reason",), "Links and pages kept out, by reason.")
LOGIN_FAILURES = Metric("crawlspace_login_failures_total", "counter", (), "Log-ins that failed or were refused.")
OF_CRAWL = (FETCHES, FETCH_SECONDS, BYTES, REFUSED, LOGIN_FAILURES)
"""What a crawl exports, of its own process."""

UP = Metric("crawlspace_up", "gauge", (), "Whether the settings and the store of the collection can be read: 1 or 0.")
URLS = Metric("crawlspace_urls", "gauge", ("state",), "Known URLs, by state.")
QUEUE = Metric("crawlspace_queue", "gauge", ("source",), "URLs that wait to be fetched: pending or due, and not leased.")
DOCUMENTS = Metric("crawlspace_documents", "gauge", (), "Documents in the index.")
OVERDUE = Metric("crawlspace_overdue_urls", "gauge", (), "Known URLs whose next fetch is due and not made.")
DOCUMENT_AGE = Metric(
    "crawlspace_document_age_seconds",
    "gauge",
    ("quantile",),
    "Seconds since the last fetch of the indexed documents; 1 is the oldest.",
)
OUTBOX_ORDERS = Metric("crawlspace_outbox_orders", "gauge", ("sink",), "Orders that a sink has not accepted yet.")
OUTBOX_OLDEST = Metric(
    "crawlspace_outbox_oldest_seconds",
    "gauge",
    ("sink",),
    "Seconds for which the oldest order has waited; 0 where none waits.",
)
PARKED = Metric("crawlspace_parked", "gauge", ("sink",), "Documents that a sink refuses.")
DELETIONS_HELD = Metric("crawlspace_deletions_held", "gauge", ("reason",), "Documents whose deletion is held, by reason.")
SITES_PAUSED = Metric(
    "crawlspace_sites_paused",
    "gauge",
    ("reason",),
    "Sites, or entries of CRAWLSPACE_SITES, from which nothing is fetched, by reason.",
)
WORKER_LAST_SEEN = Metric(
    "crawlspace_worker_last_seen_seconds",
    "gauge",
    (),
    "Seconds since the last report of the worker that is silent longest, also of one that has expired while others crawl on; none without a crawl.",
)
LAST_SUCCESS = Metric(
    "crawlspace_last_success_timestamp_seconds",
    "gauge",
    (),
    "When the last run with exit status 0 ended, as Unix time; none without one.",
)
LAST_RUN = Metric(
    "crawlspace_last_run_timestamp_seconds",
    "gauge",
    ("outcome",),
    "When the last run ended, as Unix time, with its outcome: done, stopped, failed or killed; none while one crawls.",
)
OF_STORES = (
    *(UP, URLS, QUEUE, DOCUMENTS, OVERDUE, DOCUMENT_AGE, OUTBOX_ORDERS, OUTBOX_OLDEST, PARKED, DELETIONS_HELD),
    *(SITES_PAUSED, WORKER_LAST_SEEN, LAST_SUCCESS, LAST_RUN),
)
"""What the console exports, of the stores of all collections."""

HOST_DOCUMENTS, HOST_QUEUE, HOST_OVERDUE = OF_HOSTS = tuple(
    metric._replace(labels=("host",)) for metric in (DOCUMENTS, QUEUE, OVERDUE)
)
"""What the console exports instead, for hosts that are named in the request."""


class Exposition(NamedTuple):
    """The text of metrics, and its type."""

    body: bytes
    content_type: str


class _Collected(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


def exposition(families: Sequence[Family], accept: str) -> Exposition:
    """Return metrics in the format that the header Accept asks for: that of OpenMetrics or of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(families))
    encode, content_type = choose_encoder(accept)
    return Exposition(encode(registry), content_type)


def histogram(
    metric: Metric, collection: str, *, bounds: Sequence[float], counts: Sequence[int], total: float
) -> HistogramMetricFamily:
    """Return a histogram. `counts` has one number more than there are bounds, and they are not cumulated."""
    below, buckets = 0, []
    for bound, count in zip([*map(str, bounds), "+Inf"], counts, strict=True):
        below += count
        buckets.append((bound, below))
    family = HistogramMetricFamily(metric.name, metric.meaning, labels=(COLLECTION, *metric.labels))
    family.add_metric([collection], buckets, total)
    return family
