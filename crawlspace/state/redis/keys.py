"""The names of the keys of a collection in Redis, each once; in Lua they are `keys.lease` and `PREFIX.worker`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Key(StrEnum):
    """A key of the collection."""

    ARCHIVE_FILE = "archive_file"
    ALTERNATE = "alternate"
    BROKEN = "broken"
    BY = "by"
    CLAIMED = "claimed"
    COUNTERS = "counters"
    DELETED = "deleted"
    DEPTH_MARK = "depth_mark"
    DOCUMENT = "document"
    DOCUMENTS = "documents"
    DRAIN = "drain"
    DUE = "due"
    EARLIER_BANDS = "near_band"
    FIELDS = "fields"
    FORMAT = "format"
    FREE = "free"
    GIVEN_UP = "given_up"
    HEALTH = "health"
    HELD = "held"
    HOST = "host"
    HOST_UNCOUNTED = "host_uncounted"
    REPRESENTATIVE = "representative"
    INDEX = "index"
    INHERITED = "inherited"
    KEPT = "kept"
    LAST_REQUEST = "last_request"
    LATER = "later"
    LEASE = "lease"
    LEFT = "left"
    LINK_METADATA = "link_metadata"
    LINKS = "links"
    MARK = "mark"
    META = "meta"
    NEAR = "near"
    NEAR_BAND = "near_bands"
    NEAR_GROUP = "near_group"
    NEAR_TEXT = "near_text"
    ORPHANED = "orphaned"
    OWNER = "owner"
    PAUSED = "paused"
    PENDING = "pending"
    REFUSED_PAGES = "refused_pages"
    RETRIES = "retries"
    ROBOTS = "robots"
    RUN = "run"
    SCHEMES = "schemes"
    DEFERRED = "deferred"
    SETTLING = "settling"
    SITE = "site"
    SITE_NAME = "site_name"
    STATUS = "status"
    TEXT = "text"
    TO_INHERIT = "to_inherit"
    UNREACHABLE = "unreachable"
    WAIT = "wait"
    WORKERS = "workers"


TYPES: Mapping[str, frozenset[Key]] = {
    "string": frozenset({Key.FORMAT, Key.RUN, Key.SETTLING}),
    "list": frozenset({Key.TO_INHERIT}),
    "set": frozenset(
        {Key.DUE, Key.GIVEN_UP, Key.HELD, Key.LEFT, Key.ORPHANED, Key.PAUSED, Key.PENDING, Key.SCHEMES, Key.DEFERRED}
    ),
    "zset": frozenset({Key.FREE, Key.LATER, Key.REFUSED_PAGES, Key.WORKERS}),
}
"""The types of keys that are not hashes; a function that writes checks them all first."""


class Prefix(StrEnum):
    """The beginning of keys of which there are many; each docstring names what follows."""

    CLAIM = "claim:"
    """A task that one worker at a time may do: present while one does it."""
    DUE = "d:"
    """Site and queue index: due URLs, by time."""
    GROUP = "group:"
    """Checksum, or key of the canonical page: the ids of equal documents."""
    MEMBER = "member:"
    """A group: by id, its rank in it and the page that it names."""
    NAMED = "named:"
    """A group: by key, how many members name that page as the canonical one."""
    NAMES = "names:"
    """Key of a page: the ids of pages that name it as the canonical one."""
    NEAR = "near:"
    """A group: the ids of its near duplicates."""
    OUTBOX = "out:"
    """Sink, and "delete", "push", "order" or "url": its orders."""
    OWNED = "owned:"
    """Worker: the sites that it owns."""
    PENDING = "p:"
    """Site and queue index: pending URLs, by id."""
    INHERITING = "to:"
    """Id of a page: the ids of URLs that inherit its metadata."""
    RECORDS = "url:"
    """Number of a part: its records, by id."""
    REFUSED = "refused:"
    """Letter of a reason: the sample of its refused links, by host."""
    REFUSED_HOSTS = "refused_hosts:"
    """Letter of a reason: the hosts of the sample, by the number of the entry that was added last."""
    WORKER = "worker:"
    """Worker: its number, and the reply to its last call."""


def type_of(key: Key) -> str:
    """Return the type of a key, as Redis calls it."""
    return next((kind for kind, keys in TYPES.items() if key in keys), "hash")
