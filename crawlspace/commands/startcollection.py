"""`scrapy startcollection`: create the folder of a new collection, with example rules."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from crawlspace.errors import ConfigError, UsageError
from crawlspace.rules.limits import folders
from crawlspace.runtime.components.command import CollectionCommand, refuse_wrong_name
from crawlspace.text import quoted, verb
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse

_SHOWN = 5
_FOLDERS_ONLY = "CRAWLSPACE_INDEX_ENTIRE_SITE = True "
"""The setting as in `_SETTINGS`."""


class Command(CollectionCommand):
    usage = "[options] <collection> <url> [<url> ...]"
    summary = "Create the folder of a new collection"
    explanation = (
        "Create a folder for a new collection that crawls the hosts of the given start URLs, completely and no others: "
        "start_urls.txt, crawl.rules, rules.xml and settings.py, commented, to be edited. Where a URL is that of a folder, as in "
        "http://www.example.com/docs/, the collection keeps to the folders of its start URLs. The name may have letters, digits, - and _. "
        "Exit status: 0 created, 1 the folder cannot be written, 2 wrong use or the collection exists."
    )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) < 2:
            raise UsageError("give a name and a start URL, as in: scrapy startcollection demo http://www.example.com/")
        name, *texts = args
        refuse_wrong_name(name)
        urls = list({url.text: url for url in map(_start_url, texts)}.values())
        folder = Path(str(self.project_settings()["CRAWLSPACE_COLLECTIONS_DIR"])) / name
        if folder.exists():
            raise UsageError(f"{folder} exists already: take another name, or edit the files in it")
        limit = limit_of(urls)
        settings = _SETTINGS.replace(f"#{_FOLDERS_ONLY}", _FOLDERS_ONLY) if limit else _SETTINGS
        _write(
            folder,
            {"start_urls.txt": _starts(urls), "crawl.rules": _rules(urls), "rules.xml": _RULES_XML, "settings.py": settings},
        )
        print(f"{folder} is ready: edit start_urls.txt, crawl.rules, rules.xml and settings.py in it. Then:")
        print(f"  scrapy lint {name}")
        print(f"  scrapy crawl {name}")
        site = _listed(list(dict.fromkeys(url.host for url in urls)))
        if limit:
            print(f"Only {_listed(limit)} {verb(len(limit), 'is', 'are')} crawled, with what is below:")
            print(f"  {_FOLDERS_ONLY.split(' ', maxsplit=1)[0]} in settings.py says so; without it, all of {site} is crawled")
        elif below := _folder_meant(urls):
            print(f"All of {site} is crawled. To keep to a folder, give its URL with a slash at the end, as in:")
            print(f"  scrapy startcollection {name} {below}")
        return 0


def limit_of(urls: Sequence[Url]) -> list[str]:
    """Return the folders that a collection with these start URLs is limited to, without nested ones; none if it crawls whole sites.

    It is limited to folders if one of the URLs is that of a folder, not of a site.
    """
    if not any(url.path.endswith("/") and url.path != "/" for url in urls):
        return []
    named = sorted(folders(urls))
    outermost = [one for one in named if not any(one != other and one.startswith(other) for other in named)]
    return outermost if any(one.index("/") < len(one) - 1 for one in outermost) else []


def _folder_meant(urls: Sequence[Url]) -> str:
    """Return the URL of the folder probably meant by the first start URL that is not that of a site; empty without one."""
    for url in urls:
        site = url.text[: url.text.index("/", len(url.scheme) + 3)]
        folder, _, last = url.path.rpartition("/")
        meant = f"{folder}/" if "." in last else f"{url.path}/"
        if last and meant != "/":
            return f"{site}{meant}"
    return ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _start_url(text: str) -> Url:
    if not text.lower().startswith(tuple(f"{scheme}://" for scheme in DEFAULT_PORTS)):
        raise UsageError(
            f"{quoted(text)} is no start URL: write http:// or https:// before the host, as in http://{text.rpartition('://')[2]}"
        )
    try:
        return parse(text)
    except MalformedUrl as error:
        raise UsageError(f"{error}; a start URL is like http://www.example.com/") from error


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be created: {error.strerror}; it must be in a folder that can be written") from error


def _starts(urls: Sequence[Url]) -> str:
    return "# Where the crawl begins: one URL a line. `shift=-2` after it puts it first, `shift=2` last.\n" + "".join(
        f"{url.text}\n" for url in urls
    )


def _rules(urls: Sequence[Url]) -> str:
    hosts = dict.fromkeys(url.host if url.port == DEFAULT_PORTS[url.scheme] else url.site for url in urls)
    width = max(map(len, hosts))
    first = urls[0].text[: urls[0].text.index("/", urls[0].text.index("://") + 3)]
    allowed = "".join(f"allow  domain {host:<{width}}".rstrip() + "\n" for host in hosts)
    return _RULES.format(allowed=allowed, site=first)


_RULES = """\
# What belongs to this collection. There are three kinds of rules, domain, prefix and address; of each kind the first rule that
# applies decides, and a URL is crawled when no kind forbids it. `scrapy explain` shows which rule decides for a URL.

# Hosts: * stands for any characters; with a port, as in www.example.com:8080, a rule holds for that port only.
{allowed}forbid domain *

# Parts of a site: what a URL begins with; * stands for any characters, / included.
#allow  prefix {site}/archive/index.html
#forbid prefix {site}/archive/
#forbid prefix {site}/*/print/

# Addresses that the hosts may have, with a netmask; for a crawl that is to stay inside a network.
#allow  address 10.0.0.0 255.0.0.0
#allow  address 2001:db8::/32
#forbid address 0.0.0.0 0.0.0.0
#forbid address ::/0
"""

_RULES_XML = r"""<?xml version="1.0" encoding="UTF-8"?>
<!--
  Actions for the URLs that crawl.rules admits. Every rule is applied, in order, and a later one overrides what an earlier one set.
  Without a rule a URL is crawled, its document indexed and its links followed. Take a rule out of its comment to have it.
  In a value, a backslash gives one of ^$.*+?[](){}| its meaning in a regular expression. See docs/rules_xml.md for the rest.
-->
<Rules>

  <!-- Lists: their links are followed, and they are not found themselves.
  <Rule>
    <Or> <Path val="/archive/"/> <InQuery val="page="/> </Or>
    <NoIndex/>
  </Rule>
  -->

  <!-- Not crawled at all: years of empty calendar, and what a log-in leaves in URLs.
  <Rule>
    <Or> <Path val="/calendar/\[0-9\]\{4\}/"/> <InQuery val="sessionid="/> <Length field="url" val="[500:]"/> </Or>
    <Ignore/>
  </Rule>
  -->

  <!-- A label and a field for the documents of a host and all hosts below it.
  <Rule>
    <Domain val="example.com"/>
    <Source name="website"/>
    <AddMeta name="department" value="sales"/>
  </Rule>
  -->

  <!-- News first: -2 is the highest priority, 2 the lowest.
  <Rule>
    <Path val="/news/"/>
    <Priority shift="-2"/>
  </Rule>
  -->

</Rules>
"""

_SETTINGS = """\
# What is different for this collection: settings of Scrapy, and those of crawlspace/settings.py, which explains each.
# They apply before the custom_settings of a spider class.

# Seconds between two requests to a site.
#DOWNLOAD_DELAY = 1

# Shows the owners of the sites who crawls, and whom to contact.
#USER_AGENT = "crawlspace (+https://www.example.com/about-our-crawler; crawler@example.com)"

# More start URLs, one a line, from files in this folder such as partners_urls.txt.
#CRAWLSPACE_START_URL_FILES = ["*_urls.txt"]

# Limits.
#DEPTH_LIMIT = 10                               # links away from a start URL
#CRAWLSPACE_MAX_PATH_DEPTH = 12                 # slashes in the path
#CRAWLSPACE_MAX_URLS_PER_HOST = 100_000
#CRAWLSPACE_FOLLOW_QUERY_STRINGS = False        # links with a "?" are left out
#CRAWLSPACE_INDEX_ENTIRE_SITE = True            # only the folders of the start URLs, and what is below them

# PDF, office documents and other files are read as pages are.
#CRAWLSPACE_FOLLOW_FILE_LINKS = True            # the links in them are followed
#CRAWLSPACE_FILE_MAXSIZE = 20 * 1024 * 1024     # a larger file is found by its name only

# How often pages are fetched again: more often the more often they change.
#CRAWLSPACE_REFRESH_MIN = "1d"
#CRAWLSPACE_REFRESH_MAX = "30d"

# Single sites, by host; * stands for any characters.
#CRAWLSPACE_SITES = {"slow.example.com": {"delay": 5}}
"""
