"""The roots of a crawler: start URLs, their sites, and metas.

A root in site mode (the default) stands for its site: the URLs that begin as it does, and for a root that is a whole host those of
`www.` before that host, too. If all roots are in site mode, nothing else is crawled, whatever the rules accept; crawl.rules enforces it.
Within a site URLs are accepted unless a rule ignores them. The rules of rules.xml come after that of the site, and apply to all URLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from crawlspace.errors import RuleFileError, did_you_mean
from crawlspace.importers.exalead.xml import Attribute, ConfigElement
from crawlspace.importers.files import ImportedStart, any_of, rules_without_effect, start_url, xml_rule
from crawlspace.importers.reading import WrittenValue
from crawlspace.importers.translation import Fate, ImportReport, Translation, WrongValue, lost, yes_or_no
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.text import printable, quoted
from crawlspace.urls import Url

ATTRIBUTES = ("url", "site", "priority", "group", "kvs")
DEFAULT_GROUP = "default"
_LAST_SHIFT = 2
_REDIRECTS = "if its home page redirects to another site, or to https, name that site too"


@dataclass(slots=True)
class Root:
    """A usable root."""

    url: Url
    line: int
    site_line: int
    is_site: bool = True
    shift: int = 0
    group: str = ""
    metas: list[tuple[str, str]] = field(default_factory=list)


class Roots:
    """The roots of a crawler, as far as they can be translated; the fate of each attribute is reported."""

    def __init__(self, nodes: Sequence[ConfigElement], report: ImportReport) -> None:
        self._report = report
        self.all: list[Root] = []
        self._wrong_names: dict[str, str] = {}
        """Names of metas, with the reason why AddMeta cannot add them; empty if it can."""
        known: dict[str, int] = {}
        for node in nodes:
            root = self._read(node)
            if root is None:
                continue
            if root.url.text in known:
                self._add(root.line, "url", Translation(Fate.DEFAULT, f"the root of line {known[root.url.text]} is the same URL"))
            known.setdefault(root.url.text, root.line)
            self.all.append(root)
        self.are_sites_only = bool(self.all) and all(root.is_site for root in self.all)
        """Whether only the sites of the roots are crawled."""
        for root in self.all:
            self._report_site(root)

    def starts(self) -> Iterator[ImportedStart]:
        """Yield the start URLs."""
        seen: set[str] = set()
        for root in self.all:
            if root.url.text not in seen:
                note = f" of group {printable(root.group)}" if root.group not in {"", DEFAULT_GROUP} else ""
                yield ImportedStart("Root", root.line, root.url, shift=root.shift, note=note)
            seen.add(root.url.text)

    def crawl_rules(self) -> list[str]:
        """Return the lines of crawl.rules."""
        if not self.are_sites_only:
            return []
        rules: list[tuple[str, str]] = []
        for root in self.all:
            origin = f"# {self._report.file}:{root.site_line}: Root/site"
            rules += [(f"allow domain {_host(url)}", origin) for url in _site(root.url)]
        rules.append(("forbid domain *", ""))
        for root in self.all:
            origin = f"# {self._report.file}:{root.site_line}: Root/site"
            rules += [(f"allow prefix {url}", origin) for url in _site(root.url)]
        rules += [("forbid prefix http://*", ""), ("forbid prefix https://*", "")]
        idle = rules_without_effect([written for written, _ in rules])
        lines: list[str] = []
        before = ""
        for number, (written, origin) in enumerate(rules):
            if number not in idle:
                lines += [origin, written] if origin and origin != before else [written]
                before = origin
        return lines

    def rules_xml(self, *, accept: bool, follows_roots: bool) -> list[str]:
        """Return the rules that come before those of the file. `accept`: all URLs are accepted anyway."""
        lines: list[str] = []
        for root in self.all:
            origin = f"{self._report.file}:{root.line}: Root"
            metas = [f"<AddMeta name={quoteattr(name)} value={quoteattr(value)}/>" for name, value in root.metas]
            of_site = ["<Accept/>"] * (root.is_site and not accept) + metas * root.is_site
            of_url = (
                ["<Accept/>"] * (not root.is_site and not accept) + ["<Follow/>"] * follows_roots + metas * (not root.is_site)
            )
            if of_site:
                lines += xml_rule([f"{origin}, the site"], any_of([_begins(url) for url in _site(root.url)]), of_site)
            if of_url:
                lines += xml_rule([f"{origin}, the URL"], _is(root.url), of_url)
        return lines

    # --- reading -----------------------------------------------------------------------------------------------------

    def _read(self, node: ConfigElement) -> Root | None:
        for name, attribute in node.attributes.items():
            if name not in ATTRIBUTES:
                meant = did_you_mean(name, ATTRIBUTES, f"a Root has {', '.join(ATTRIBUTES)}")
                self._add(attribute.line, name, lost(f"{quoted(name)} is not known: {meant}"), is_recalled=False)
        for child in node.elements:
            self._report.add(child.line, f"Root/{child.name}", Fate.NO_COUNTERPART, "a Root holds no elements")
        if node.text.strip():
            self._report.add(node.line, "Root", Fate.NO_COUNTERPART, "a Root has its URL in the attribute url, and holds no text")
        written = node.attributes.get("url")
        if written is None or not written.value.strip():
            self._report.add(node.line, "Root/url", Fate.NO_COUNTERPART, 'this Root has no URL; write it, as in <Root url="…"/>')
            return None
        url = start_url(WrittenValue(written.value.strip(), written.line))
        if isinstance(url, Translation):
            self._add(written.line, "url", url, is_recalled=False)
            return None
        root = Root(url, written.line, node.line)
        if group := node.attributes.get("group"):
            root.group = group.value.strip()
            self._add(group.line, "group", Translation(Fate.DEFAULT, "the rules of all groups hold for all URLs"))
        if site := node.attributes.get("site"):
            self._read_site(root, site)
        if priority := node.attributes.get("priority"):
            self._read_priority(root, priority)
        if metas := node.attributes.get("kvs"):
            self._read_metas(root, metas)
        return root

    def _read_site(self, root: Root, site: Attribute) -> None:
        root.site_line = site.line
        try:
            root.is_site = yes_or_no([site.value.strip()])
        except WrongValue as error:
            self._add(site.line, "site", lost(f"its value cannot be used, so that it is true, the default: {error}"))

    def _read_priority(self, root: Root, priority: Attribute) -> None:
        text = priority.value.strip()
        digits = text.lstrip("+-") if text[:1] in {"+", "-"} and text[1:2].isdigit() else text
        if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
            self._add(priority.line, "priority", lost(f"its value cannot be used: it is a whole number, not {quoted(text)}"))
            return
        number = int(text)
        root.shift = max(-_LAST_SHIFT, min(number, _LAST_SHIFT))
        if number == 0:
            self._add(priority.line, "priority", Translation(Fate.DEFAULT, "a start URL has shift 0"))
        elif number == root.shift:
            self._add(priority.line, "priority", Translation(Fate.TRANSLATED, f"shift={root.shift} in start_urls.txt"))
        else:
            text = f"a shift is from -2 (first) to 2 (last): shift={root.shift} is written into start_urls.txt"
            self._add(priority.line, "priority", lost(text))

    def _read_metas(self, root: Root, metas: Attribute) -> None:
        """Read `key1=value1;key2=value2`."""
        for part in metas.value.split(";"):
            name, is_there, value = (piece.strip() for piece in part.partition("="))
            if not part.strip():
                continue
            if not is_there or not name:
                self._add(metas.line, "kvs", lost(f"{quoted(part.strip())} is not key=value"))
            elif why := self._wrong_name(name):
                self._add(metas.line, "kvs", lost(f"{quoted(name)} cannot be added: {why}"))
            else:
                root.metas.append((name, value))
                which = "all documents of the site" if root.is_site else "its document, and to those that it links to"
                text = f"a rule of rules.xml that adds the field {quoted(name)} to {which}"
                self._add(metas.line, "kvs", Translation(Fate.TRANSLATED, text), is_recalled=True)

    def _wrong_name(self, name: str) -> str:
        if name not in self._wrong_names:
            self._wrong_names[name] = _wrong_meta(name)
        return self._wrong_names[name]

    def _report_site(self, root: Root) -> None:
        if not root.is_site:
            text = "URLs outside of it are decided by the rules and by defaultAccept"
            self._report.add(root.site_line, "Root/site", Fate.DEFAULT, text)
            return
        site = " and ".join(printable(url) for url in _site(root.url))
        if self.are_sites_only and "*" in root.url.text:
            text = f"in crawl.rules, the * of {printable(root.url.text)} matches any text, so that more than the site is crawled"
            self._report.add(root.site_line, "Root/site", Fate.NO_COUNTERPART, text)
        elif self.are_sites_only:
            text = f"rules of crawl.rules: only what begins with {site}; {_REDIRECTS}"
            self._report.add(root.site_line, "Root/site", Fate.TRANSLATED, text)
        else:
            text = (
                f"another root is not in site mode, so that links that leave {site} are decided by the rules and by defaultAccept, as "
                "all others"
            )
            self._report.add(root.site_line, "Root/site", Fate.NO_COUNTERPART, text)

    def _add(self, line: int, name: str, translation: Translation, *, is_recalled: bool = False) -> None:
        self._report.add(line, f"Root/{name}", translation.fate, translation.text, is_recalled=is_recalled)


def _wrong_meta(name: str) -> str:
    """Return why AddMeta cannot add a field; empty if it can."""
    rule = "\n".join(xml_rule([], '<Path val="/"/>', [f'<AddMeta name={quoteattr(name)} value=""/>']))
    try:
        parse_rules_xml(f"<Rules>{rule}</Rules>".encode(), file="")
    except RuleFileError as error:
        return error.mistakes[0].message
    return ""


def _site(url: Url) -> list[str]:
    """Return the beginnings of the URLs of the site."""
    begins = [url.text]
    is_host = url.path == "/" and url.query is None
    if is_host and not url.host.startswith("www.") and not _is_address(url.host):
        begins.append(url.text.replace("://", "://www.", 1))
    return begins


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.replace(".", "").isdigit()


def _host(url: str) -> str:
    """Return the target of a domain rule for the site of a URL in normal form."""
    return url.partition("://")[2].partition("/")[0]


def _begins(text: str) -> str:
    """Return the condition that a URL begins with a text: the host in any case, the rest exactly."""
    path = text.partition("://")[2].partition("/")[2]
    begins = f'<Atom field="url" kind="prefix" literal="true" value={quoteattr(text)}/>'
    if not path:
        return begins
    before, mark, query = f"/{path}".partition("?")
    exact = [f'<Atom field="path" kind="{"exact" if mark else "prefix"}" norm="none" literal="true" value={quoteattr(before)}/>']
    if query:
        exact.append(f'<Atom field="query" kind="prefix" norm="none" literal="true" value={quoteattr(query)}/>')
    return f"<And> {begins} {' '.join(exact)} </And>"


def _is(url: Url) -> str:
    """Return the condition that a URL equals this one."""
    parts = [f'<Url literal="true" val={quoteattr(url.text)}/>']
    if url.path != "/":
        parts.append(f'<Atom field="path" kind="exact" norm="none" literal="true" value={quoteattr(url.path)}/>')
    if url.query:
        parts.append(f'<Atom field="query" kind="exact" norm="none" literal="true" value={quoteattr(url.query)}/>')
    return parts[0] if len(parts) == 1 else f"<And> {' '.join(parts)} </And>"
