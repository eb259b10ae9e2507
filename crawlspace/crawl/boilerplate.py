"""The blocks that were learned of sites, kept with the state of the collection."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from crawlspace.content.boilerplate import SiteBlocks
from crawlspace.state.metadata import damaged
from crawlspace.state.store import MetaStore

_META = "boilerplate"


def learned_blocks(store: MetaStore) -> dict[str, SiteBlocks]:
    """Return what was learned last, by site. Raises StoreDamaged."""
    written = store.get_meta(_META)
    if not written:
        return {}
    try:
        return msgspec.json.decode(written, type=dict[str, SiteBlocks])
    except msgspec.MsgspecError as error:
        raise damaged(_META, written) from error


def set_learned_blocks(store: MetaStore, learned: Mapping[str, SiteBlocks]) -> None:
    """Replace what was learned."""
    store.set_meta(_META, msgspec.json.encode(learned).decode() if learned else "")
