"""What an export of Exalead CloudView used as rules.xml has around and beside its rules.

Only its rules are read. What would narrow the crawl space is an error, unless the collection narrows it itself: without it the crawl
would go where the export does not. All else is a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from crawlspace.errors import Mistake
from crawlspace.parsing import boolean, words
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.xml.model import ActionRuleSet, NotRead
from crawlspace.text import printable, quoted

IMPORT = "`scrapy import-exalead` makes a collection of the whole export"
_MOST_NAMES = 20
_TYPES = "CRAWLSPACE_MIME_TYPES"
_SWITCHES: tuple[tuple[str, str, bool], ...] = (
    # an attribute that is off narrows the crawl space; the setting with the value that does the same
    ("defaultAccept", "CRAWLSPACE_DEFAULT_ACCEPT", False),
    ("defaultIndex", "CRAWLSPACE_DEFAULT_INDEX", False),
    ("defaultFollow", "CRAWLSPACE_DEFAULT_FOLLOW", False),
    ("ignoreRobotsTxt", "ROBOTSTXT_OBEY", True),
)
_ON, _OFF = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


def narrowing(rules: ActionRuleSet, own: CrawlRules, settings: Mapping[str, object], *, file: str) -> Iterator[Mistake]:
    """Yield a mistake for each part of an export that narrows the crawl space, and for which the collection has nothing.

    Raises SettingError for a wrong value of a setting that is compared.
    """
    for wrapper in rules.around:
        found = dict(wrapper.attributes)
        for name, setting, wanted in _SWITCHES:
            if (
                name in found
                and found[name].strip().lower() not in _ON
                and boolean(setting, settings.get(setting, True)) is not wanted
            ):
                shown = f"{name}={quoted(found[name])}"
                yield _mistake(wrapper, file, f"{shown} of {wrapper.element} has no effect here", f"set {setting} = {wanted}")
        types = settings.get(_TYPES, Limits().mime_types)
        if found.get("mimeTypes", "").strip() and tuple(words(_TYPES, types)) == Limits().mime_types:
            what = f"mimeTypes={quoted(found['mimeTypes'])} of {wrapper.element} has no effect here"
            yield _mistake(wrapper, file, what, f"set {_TYPES}")
    roots = [one for one in rules.beside if one.element == "Root"]
    is_site_only = roots and not any(dict(root.attributes).get("site", "").strip().lower() in _OFF for root in roots)
    if is_site_only and not _keeps_to_hosts(own, settings):
        what = f"the roots of this export ({len(roots):,}) keep the crawl to their sites, and that has no effect here"
        yield _mistake(roots[0], file, what, "write domain rules into crawl.rules")


def what_is_not_read(rules: ActionRuleSet) -> str:
    """Return a sentence that names what of an export is not read; empty for a file with nothing but rules."""
    names = [f"{name} of {one.element}" for one in rules.around for name, _ in one.attributes if name != "name"]
    names += [
        name if count == 1 else f"{name} ({count:,})" for name, count in Counter(one.element for one in rules.beside).items()
    ]
    if not names:
        return ""
    shown = ", ".join(printable(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"of an export of Exalead CloudView only the rules are read, without {shown}{more}; {IMPORT}"


def first_not_read(rules: ActionRuleSet) -> NotRead:
    """Return the first thing that is not read; there is one wherever `what_is_not_read` returns a sentence."""
    return min((*(one for one in rules.around if one.attributes), *rules.beside), key=lambda one: (one.line, one.column))


def _keeps_to_hosts(own: CrawlRules, settings: Mapping[str, object]) -> bool:
    offsite, folder = "CRAWLSPACE_FOLLOW_OFFSITE_LINKS", "CRAWLSPACE_INDEX_ENTIRE_SITE"
    if own.domain or own.prefix or not boolean(offsite, settings.get(offsite, True)):
        return True
    return boolean(folder, settings.get(folder, False))


def _mistake(at: NotRead, file: str, what: str, way_out: str) -> Mistake:
    message = f"{what}, so that more would be crawled; {way_out}, or leave it out of this file; {IMPORT}"
    return Mistake(file, at.line, at.column, message, at.text)
