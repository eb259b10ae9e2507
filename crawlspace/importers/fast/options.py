"""The single options of FAST's web crawler, and the settings of ours that do the same.

An option that is in no table is reported as not known. Values of such options are not printed: they may be passwords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from crawlspace.errors import SettingError
from crawlspace.frontier.delay_schedule import read_timetable
from crawlspace.importers.access import FormLogIn, SiteLogin, basic_login, ntlm
from crawlspace.importers.fast.xml import FastOption, FastSection
from crawlspace.importers.translation import (
    NO_LIMIT_OF_REPEATED_SEGMENTS,
    Defaults,
    Fate,
    Translate,
    Translation,
    WrongValue,
    always,
    as_number,
    as_switch,
    as_text,
    as_whole,
    extensions,
    lost,
    mime_types,
    near_duplicates,
    never,
    number,
    one_value,
    setting,
    whole,
    yes_or_no,
)
from crawlspace.state.error_policy import read_error_rules
from crawlspace.text import printable
from crawlspace.urls import DEFAULT_PORTS

CONFIRMED = frozenset({"start_uris", "start_uri_files", "delay", "refresh", "max_sites", "max_inter_docs"})
"""Options whose meaning public documentation states; the others are known by experience."""


def _schemes(values: Sequence[str], defaults: Defaults) -> Translation:
    schemes = sorted({value.lower() for value in values})
    known = [scheme for scheme in schemes if scheme in DEFAULT_PORTS]
    if not known:
        return lost("only http and https are crawled")
    if known != schemes:
        unknown = ", ".join(scheme for scheme in schemes if scheme not in DEFAULT_PORTS)
        return Translation(
            Fate.NO_COUNTERPART, f"{unknown} is not crawled; CRAWLSPACE_SCHEMES = {known}", {"CRAWLSPACE_SCHEMES": known}
        )
    return setting(defaults, "CRAWLSPACE_SCHEMES", known)


def _searched(values: Sequence[str], _: Defaults) -> Translation:
    if {value.lower() for value in values} <= {"text/html", "application/xhtml+xml"}:
        return Translation(Fate.DEFAULT, "links are taken from HTML")
    return lost("links are taken from HTML, and with CRAWLSPACE_FOLLOW_FILE_LINKS from all files that are read")


def refresh(values: Sequence[str], defaults: Defaults) -> Translation:
    """Translate the length of a cycle. Raises WrongValue."""
    minutes = number(values)
    if not minutes:
        raise WrongValue("it is a number of minutes above 0")
    note = " (minutes); let `scrapy crawl` start at least as often, or set CRAWLSPACE_CONTINUOUS = True"
    return setting(defaults, "CRAWLSPACE_REFRESH_CYCLE", minutes, note=note)


def refresh_mode(values: Sequence[str], defaults: Defaults) -> Translation:
    """Translate what the beginning of a cycle does. Raises WrongValue."""
    mode = one_value(values).lower()
    if mode not in {"scratch", "append", "prioritized", "soft"}:
        raise WrongValue("it is scratch, append, prioritized, soft or adaptive")
    return setting(defaults, "CRAWLSPACE_REFRESH_MODE", mode)


def _robots_delay(values: Sequence[str], defaults: Defaults) -> Translation:
    if yes_or_no(values):
        return Translation(Fate.DEFAULT, f"CRAWLSPACE_ROBOTS_DELAY_MAX = {defaults['CRAWLSPACE_ROBOTS_DELAY_MAX']!r}")
    return setting(defaults, "CRAWLSPACE_ROBOTS_DELAY_MAX", 0)


def _recursion(values: Sequence[str], defaults: Defaults) -> Translation:
    most = whole(values) or NO_LIMIT_OF_REPEATED_SEGMENTS
    return setting(defaults, "CRAWLSPACE_MAX_REPEATED_SEGMENTS", most, note="; a path segment counts, wherever it comes again")


def _failures(values: Sequence[str], defaults: Defaults) -> Translation:
    return setting(defaults, "CRAWLSPACE_MAX_SITE_FAILURES", max(3, whole(values)))


def _rendering(values: Sequence[str], defaults: Defaults) -> Translation:
    note = '; it needs the extra `browser`, and "auto" costs less'
    return setting(defaults, "CRAWLSPACE_RENDER", "always" if yes_or_no(values) else "never", note=note)


def _mode_of_crawl(values: Sequence[str], defaults: Defaults) -> Translation:
    mode, _, depth = one_value(values).upper().partition(":")
    if mode == "FULL" and not depth:
        return setting(defaults, "DEPTH_LIMIT", 0)
    if mode != "DEPTH":
        raise WrongValue("it is FULL or DEPTH:n")
    if whole([depth.strip()]):
        return setting(defaults, "DEPTH_LIMIT", int(depth))
    return setting(defaults, "CRAWLSPACE_DEFAULT_FOLLOW", False)  # noqa: FBT003 - the value of the setting


_OF_ONE_MACHINE = "it is about how FAST's own processes share memory, disks and machines"
_LOGS = (
    "logs are Scrapy's: see LOG_FILE and LOG_LEVEL, and `scrapy status`, `scrapy urls` and `scrapy refused` for what they hold"
)

OPTIONS: Mapping[str, Translate] = {
    "allowed_schemes": _schemes,
    "allowed_types": mime_types,
    "force_mimetype_detection": always(
        usual=False,
        same="a type that the site names is believed",
        otherwise="the first bytes decide only where the site names no type",
    ),
    "exclude_exts": extensions,
    "uri_search_mime": _searched,
    "delay": as_number("DOWNLOAD_DELAY"),
    "max_sites": as_whole("CRAWLSPACE_MAX_SITES", low=1),
    "max_doc": as_whole("CRAWLSPACE_MAX_URLS_PER_HOST", low=1, note="; all known URLs of a host count, not those of a cycle"),
    "max_pages": as_whole(
        "CLOSESPIDER_PAGECOUNT",
        low=1,
        note="; a run ends there, after what is in flight, and the next one goes on: start one a cycle, and set no CRAWLSPACE_CONTINUOUS;"
        " robots.txt and errors count too",
    ),
    "max_inter_docs": as_whole("CRAWLSPACE_MAX_PAGES_IN_TURN", low=1),
    "enforce_delay_per_ip": as_switch("CRAWLSPACE_SHARE_ADDRESS_DELAY"),
    "refresh_when_idle": as_switch("CRAWLSPACE_REFRESH_WHEN_IDLE"),
    "robots_ttl": as_whole("CRAWLSPACE_ROBOTS_TTL", low=60),
    "robots_timeout": never("a robots.txt has the time that each request has (DOWNLOAD_TIMEOUT)"),
    "robots_tout_ignore": always(
        usual=False,
        same="a site whose robots.txt does not come waits",
        otherwise="a site whose robots.txt does not come is not crawled",
    ),
    "robots_auth_ignore": always(
        usual=True,
        same="401 and 403 mean that there is no robots.txt",
        otherwise="401 and 403 always mean that there is no robots.txt",
    ),
    "obey_robots_delay": _robots_delay,
    "fetch_timeout": as_whole("DOWNLOAD_TIMEOUT", low=1),
    "max_redirects": as_whole("REDIRECT_MAX_TIMES"),
    "html_redir_is_redir": always(
        usual=False,
        same="a refresh in HTML is a link",
        otherwise="a refresh in HTML is followed as a link, and not counted as a redirect",
    ),
    "html_redir_thresh": never("a refresh in HTML is followed as a link, whatever its delay"),
    "max_uri_recursion": _recursion,
    "sort_query_params": as_switch("CRAWLSPACE_URL_SORT_QUERY"),
    "csum_cut_off": as_whole("CRAWLSPACE_CHECKSUM_CUT_OFF", note="; it counts the text of a page, not its HTML"),
    "use_meta_csum": always(usual=False, same="META tags don't count", otherwise="META tags don't count when pages are compared"),
    "near_duplicate_detection": near_duplicates,
    "extract_links_from_dupes": always(
        usual=True, same="links of duplicates are followed", otherwise="links of duplicates are always followed"
    ),
    "if_modified_since": as_switch("CRAWLSPACE_CONDITIONAL_GET"),
    "accept_compression": always(usual=True, same="pages may come compressed", otherwise="pages may always come compressed"),
    "use_http_1_1": always(usual=True, same="HTTP/1.1 is spoken", otherwise="HTTP/1.1 is always spoken"),
    "user_agent": as_text("USER_AGENT"),
    "proxy_max_pending": never("no limit is for a proxy; CONCURRENT_REQUESTS is one for all requests"),
    "max_backoff_counter": _failures,
    "max_backoff_delay": as_whole("CRAWLSPACE_BACKOFF_MAX"),
    "wqfilter": never("each URL is known once by itself, without a filter"),
    "smfilter": never("each URL is known once by itself, without a filter"),
    "domain_clustering": never(_OF_ONE_MACHINE),
    "max_reflinks": never("all links are kept, and `scrapy links` shows them"),
    "umlogs": never(_LOGS),
    "use_javascript": _rendering,
    "javascript_keep_html": always(
        usual=False, same="the rendered page counts", otherwise="the rendered page counts; its HTML as sent is in the archive"
    ),
    "javascript_delay": never("the site's delay holds for rendered pages, too"),
    "login_timeout": never("a log-in has a time of its own that is not set"),
    "login_failed_ignore": always(
        usual=False,
        same="a site whose log-in fails is paused",
        otherwise="a site whose log-in fails is paused, and nothing of it deleted",
    ),
    "info": lambda _, __: Translation(Fate.TRANSLATED, "a comment in settings.py"),
}
CRAWLMODE: Mapping[str, Translate] = {
    "mode": _mode_of_crawl,
    "fwdlinks": as_switch("CRAWLSPACE_FOLLOW_OFFSITE_LINKS"),
    "fwdredirects": as_switch("CRAWLSPACE_FOLLOW_OFFSITE_REDIRECTS"),
    "reset_level": always(
        usual=False,
        same="the depth counts from a start URL on",
        otherwise="the depth counts from a start URL on, also on another site",
    ),
}
RSS: Mapping[str, Translate] = {
    "auto_discover": always(
        usual=True, same="feeds that pages name are read", otherwise="feeds that pages name are always read where feeds are"
    ),
    "follow": lambda values, defaults: setting(
        defaults, "CRAWLSPACE_FOLLOW", "both" if yes_or_no(values) else "sitemaps", note="; links of pages are not followed"
    ),
    "ignore_rules": always(
        usual=False,
        same="rules hold for what a feed names",
        otherwise="rules hold for what a feed names, too: allow it by a rule",
    ),
    "index_feed": always(usual=False, same="a feed is not indexed", otherwise="a feed is never indexed, only what it names"),
    "del_expired_links": always(
        usual=False,
        same="a page that a feed names no more stays as long as it answers",
        otherwise="a page that a feed names no more stays as long as it answers; CRAWLSPACE_ORPHANS deletes pages that nothing leads to any more,"
        " those of the whole collection",
    ),
    "max_link_age": never("what a feed names belongs to it as long as it names it"),
    "max_link_count": never("what a feed names belongs to it as long as it names it; CRAWLSPACE_SITEMAP_MAX_ENTRIES bounds one"),
}
SECTIONS: Mapping[str, Translate] = {
    "log": never(_LOGS),
    "storage": never("what is fetched is kept in the archive (CRAWLSPACE_ARCHIVE), and states in the store"),
    "cachesize": never(_OF_ONE_MACHINE),
    "feeding": never("documents are sent to CRAWLSPACE_SINKS: write those of yours"),
    "pp": never(_OF_ONE_MACHINE),
    "ppdup": never("the store knows the duplicates; CRAWLSPACE_STORE_URL is one for several machines"),
    "ftp_errors": never("FTP is not crawled"),
    "limits": never("a full disk stops the crawl without a setting; CRAWLSPACE_ARCHIVE_MAX_BYTES bounds the archive"),
    "focused": never("nothing is chosen by language"),
    "workqueue_priority": never(
        "queues have weights (CRAWLSPACE_SOURCE_WEIGHTS), and rules.xml has Priority: write those of yours"
    ),
}


# --- Sections of FAST's configuration whose options together are one setting: errors, delays by the time of the week, link tags ---

Rows = tuple[Sequence[tuple[FastOption, Translation]], Mapping[str, object]]
"""The fate of each option, and the setting for all that were translated."""

_TAGS = {"a": "a", "area": "area", "frame": "frame", "iframe": "iframe", "link": "link", "meta": "meta", "meta_refresh": "meta"}
"""Elements whose links can be followed, by FAST's names."""


def _errors(section: FastSection, _: Defaults) -> Rows:
    name = "CRAWLSPACE_HTTP_ERRORS"

    def read(option: FastOption, found: Mapping[str, object]) -> object:
        value = _values(option)
        read_error_rules({**found, option.name: value})
        return value

    return _each(section, name, read)


def _delays(section: FastSection, _: Defaults) -> Rows:
    name = "CRAWLSPACE_VARIABLE_DELAY"

    def read(option: FastOption, found: Mapping[str, object]) -> object:
        text = _values(option)
        value: object = "suspend" if text.lower() == "suspend" else number([text])
        read_timetable(name, {**found, option.name: value}, zone=None)
        return value

    return _each(section, name, read)


def _each(section: FastSection, name: str, read: Callable[[FastOption, Mapping[str, object]], object]) -> Rows:
    found: dict[str, object] = {}
    rows: list[tuple[FastOption, Translation]] = []
    for option in section.options:
        try:
            value = read(option, found)
        except (WrongValue, SettingError) as error:
            rows.append((option, lost(f"it cannot be used: {error}")))
            continue
        found[option.name] = value
        rows.append((option, Translation(Fate.TRANSLATED, f"{printable(option.name)!r}: {value!r} in {name}")))
    return rows, {name: found} if found else {}


def _values(option: FastOption) -> str:
    return one_value([value.text for value in option.values])


def _link_tags(section: FastSection, defaults: Defaults) -> Rows:
    name = "CRAWLSPACE_LINK_TAGS"
    usual = defaults[name]
    assert isinstance(usual, list)
    tags: dict[str, bool] = {}
    rows: list[tuple[FastOption, Translation]] = []
    for option in section.options:
        tag = _TAGS.get(option.name.lower())
        try:
            wanted = yes_or_no([value.text for value in option.values])
        except WrongValue as error:
            rows.append((option, lost(f"its value cannot be used: {error}")))
            continue
        if tag is None:
            reason = "no link is taken from it" if option.name.lower() != "base" else "it is obeyed, and is no link"
            rows.append((option, lost(reason) if wanted else Translation(Fate.DEFAULT, reason)))
            continue
        tags[tag] = tags.get(tag, False) or wanted
        is_usual = wanted == (tag in usual)
        text = f"{tag} {'is' if wanted else 'is not'} in {name}"
        rows.append((option, Translation(Fate.DEFAULT if is_usual else Fate.TRANSLATED, text)))
    kept = [tag for tag in usual if tags.get(tag, True)]
    return rows, {} if kept == usual else {name: kept}


READERS: Mapping[str, Callable[[FastSection, Defaults], Rows]] = {
    "http_errors": _errors,
    "variable_delay": _delays,
    "link_extraction": _link_tags,
}


# --- FAST's log-ins. Passwords become references to the environment; they are neither written nor printed ----------

_SCHEMES = ("basic", "digest", "ntlm", "auto")


def site_login(name: str, value: str, *, collection: str) -> SiteLogin:
    """Return the log-in of a `passwd`: `name` is the beginning of URLs, `value` user:password[:realm[:scheme]]."""
    user, colon, rest = value.partition(":")
    if not colon or not user:
        return SiteLogin("", text="its value is not user:password: write the log-in of the site into CRAWLSPACE_SITES")
    last = rest.rpartition(":")[2].lower()
    scheme = last if last in _SCHEMES else "auto"
    if scheme == "ntlm":
        return ntlm()
    return basic_login(name, user, collection=collection, kind=scheme)


LOGIN_OPTIONS: Mapping[str, str] = {
    "scheme": "",
    "site": "",
    "form": "",
    "html_form": "",
    "sites": "",
    "parameters": "",
    "preload": "the page with the form is loaded first, with its cookies, and no other one",
    "action": "the form itself says whether it is sent by GET or POST",
    "autofill": "what a form has filled in already is always sent",
    "ttl": "a session is renewed as soon as a page shows that it has ended",
    "relogin_if_failed": "a log-in that fails for a passing reason is tried again",
}
"""The options of a Login; those with a sentence need no setting."""


def form_of_login(section: FastSection) -> FormLogIn:
    """Return the log-in by a form of a Login. Raises WrongValue, without values: they may be secrets."""
    values = {option.name: [value.text for value in option.values] for option in section.options}
    first = {name: found[0] for name, found in values.items() if found}
    page = first.get("html_form", "")
    if not page:
        site, form = first.get("site", ""), first.get("form", "")
        if not site:
            raise WrongValue("it names neither the page of its form (html_form) nor the host of it (site)")
        page = form if "://" in form else f"{first.get('scheme', 'http').lower()}://{site.strip('/')}/{form.lstrip('/')}"
    elif "://" not in page:
        page = f"{first.get('scheme', 'http').lower()}://{page}"
    fields: dict[str, str] = {}
    for text in values.get("parameters", ()):
        for pair in text.split("&"):
            name, separator, value = pair.partition("=")
            if separator and name.strip():
                fields[name.strip()] = value.strip()
    for nested in section.sections:
        if nested.name == "parameters":
            fields.update({option.name: option.text for option in nested.options})
    return FormLogIn(page, fields, values.get("sites", ()))


# --- Refresh mode adaptive: a cycle of several parts, in each of which a share of a site's pages is fetched again ------

ADAPTIVE = {"refresh_count": 4, "coverage_max_pct": 10}
"""FAST's defaults, as far as known: parts of a cycle, and the largest share of a site in per cent in one of them."""
ADAPTIVE_LOST = {
    "refresh_quota": "new pages and those due again have sources with weights: set CRAWLSPACE_SOURCE_WEIGHTS",
    "coverage_min": "the least that is fetched of a site is what is due there",
    "weights": "how often a page has changed decides when it is due, and nothing else; rules.xml has Priority for folders",
}
