"""What monitoring asks the console: its metrics, and whether it is alive and ready."""

from __future__ import annotations

from http import HTTPStatus

from crawlspace.console.console import Console
from crawlspace.console.routes import Asked, Route, Routes, Text, page
from crawlspace.console.store_metrics import MOST_HOSTS, StoreMetrics
from crawlspace.errors import UsageError


def routes(console: Console) -> Routes:
    """Return `/metrics`, for users and programs, and `/live` and `/ready`, for everybody."""
    metrics = StoreMetrics(console)

    def show(asked: Asked) -> Text:
        hosts = [host for host in asked.query.get("host", "").lower().split(",") if host]
        if len(hosts) > MOST_HOSTS:
            raise UsageError(f"host names {len(hosts)} hosts; ask for {MOST_HOSTS} at most")
        shown = metrics.exposition(hosts, asked.accept)
        return Text(shown.body, shown.content_type)

    def ready(_: Asked) -> Text:
        fault = metrics.fault()
        return Text(f"not ready: {fault}\n".encode(), status=HTTPStatus.SERVICE_UNAVAILABLE) if fault else Text(b"ready\n")

    return (page("/metrics", show), *health_routes(), Route("GET", "/ready", ready, role=None))


def health_routes() -> Routes:
    """Return `/live`, which answers as long as the process does."""
    return (Route("GET", "/live", lambda _: Text(b"alive\n"), role=None),)
