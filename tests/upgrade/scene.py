"""The sites and the collection whose files are kept of each version: something of all that a store keeps.

The hosts have names, and a proxy leads to them, so that what is kept names no port of a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.conftest import Project
from tests.forward_proxy import forward_proxy
from tests.integration.stored import ARCHIVED
from tests.sites import Route, Server, Site, html, page, redirect, serve, status, text

WWW, BLOG = "www.kept.example", "blog.kept.example"
HOME = f"http://{WWW}/"
GUIDES = 12
OLD = ("/old/1", "/old/2", "/old/3")
"""Pages that the rules exclude in the end."""
LATE = ("/late/1", "/late/2")
"""Pages of the blog that are found when it is paused."""
LEASED = "/slow"
"""The page that was being fetched when its crawl was killed."""
SINK = "search"

_WORDS = [f"word{number}" for number in range(1_200)]
_AT_FIRST = "allow domain *.kept.example\nforbid domain *\n"
_IN_THE_END = f"forbid prefix {HOME}old/\n{_AT_FIRST}"
_RULES_XML = '<Rules><Rule><Path val="/team"/><AddMeta name="department" value="pumps"/></Rule></Rules>\n'
_EXTRACTION = '[[field]]\nname = "price"\ncss = ".price::text"\ntype = "number"\n'
_SITEMAP = f"""<?xml version="1.0"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url><loc>{HOME}from-sitemap</loc><lastmod>2025-01-02</lastmod></url>
</urlset>
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """Both sites, served, and the proxy that leads to them."""

    www: Server
    blog: Server
    proxy: str

    def configure(self, project: Project, sink: Mapping[str, object]) -> None:
        """Write the collection `demo`, as it is at first. `sink`: the options of its second sink."""
        sinks = {"local": {"type": "sqlite"}, SINK: dict(sink)}
        project.write(
            {
                "demo/start_urls.txt": f"{HOME}\n",
                "demo/crawl.rules": _AT_FIRST,
                "demo/rules.xml": _RULES_XML,
                "demo/extract.toml": _EXTRACTION,
                "demo/settings.py": (
                    f"{ARCHIVED}CRAWLSPACE_NEAR_DUPLICATES = 3\nRETRY_TIMES = 0\nCRAWLSPACE_MAX_DELETIONS = 1\n"
                    "CRAWLSPACE_MAX_DELETIONS_PERCENT = 1\nCONCURRENT_REQUESTS = 1\n"
                    f"CRAWLSPACE_PROXY = {self.proxy!r}\nCRAWLSPACE_SINKS = {sinks!r}\n"
                ),
            }
        )

    def change(self, project: Project) -> None:
        """Have sites and rules as they are in the end."""
        self.www.site["/"] = _home(*OLD, "/new", LEASED, *(f"http://{BLOG}{path}" for path in LATE))
        project.write({"demo/crawl.rules": _IN_THE_END})


@contextmanager
def served() -> Iterator[Scene]:
    """Serve the sites as they are at first."""
    with serve(Site({"/": _home(*OLD), **_PAGES})) as www, serve(Site(_BLOG)) as blog:
        with forward_proxy({f"{WWW}:80": www.netloc, f"{BLOG}:80": blog.netloc}) as proxy:
            yield Scene(www, blog, proxy.url)


def _home(*more: str) -> Route:
    linked = [path for path in _PAGES if path not in _NOT_LINKED]
    return page("Home", text="all there is", links=[*linked, f"http://{BLOG}/", *more])


def _guide(number: int) -> str:
    return " ".join(f"{word} of guide {number}" for word in ("first", "second", "third"))


def _near(*changes: int) -> str:
    """Return a text of 1,200 words, of which those at some positions are others."""
    return " ".join("changed" if position in changes else word for position, word in enumerate(_WORDS))


_NOT_LINKED = frozenset({"/robots.txt", "/sitemap.xml", "/from-sitemap", "/below-noindex", "/team-member", "/new", LEASED, *OLD})
_PAGES: Mapping[str, Route] = {
    "/robots.txt": text(f"User-agent: *\nDisallow: /private/\nSitemap: {HOME}sitemap.xml\n"),
    "/sitemap.xml": text(_SITEMAP, headers={"Content-Type": "application/xml"}),
    "/from-sitemap": page("From the sitemap", text="no page links here"),
    **{f"/guide/{n}": page(f"Guide {n}", text=_guide(n), links=[f"/guide/{n % GUIDES + 1}"]) for n in range(1, GUIDES + 1)},
    "/print/1": page("Guide 1", text=_guide(1), links=["/guide/2"]),
    "/print/2": page("Guide 2", text=_guide(2), links=["/guide/3"]),
    "/near/1": page("Near", text=_near()),
    "/near/22": page("Near", text=_near(20)),
    "/near/333": page("Near", text=_near(40)),
    "/canonical": page("Guide 3 for print", text="printed", head='<link rel="canonical" href="/guide/3">'),
    "/moved": redirect("/guide/4", 301),
    "/loop": redirect("/loop"),
    "/to-the-blog": redirect(f"http://{BLOG}/"),
    "/missing": status(404),
    "/broken": status(500),
    "/noindex": page("Not indexed", head='<meta name="robots" content="noindex">', links=["/below-noindex"]),
    "/below-noindex": page("Below", text="its parent is not indexed"),
    "/private/1": page("Private"),
    "/team": page("Team", text="who we are", links=["/team-member", "http://elsewhere.example/"]),
    "/team-member": page("A member", text="one of us"),
    "/shop": html("<title>Shop</title><h1>Shop</h1><p>a pump costs <span class=price>12.50</span></p>"),
    "/plain.txt": text("a plain text about valves"),
    "/japanese": page("日本語の案内", text="管理者のための検索エンジンの説明書です。", lang="ja"),
    "/thai": page("คู่มือ", text="บริษัทก่อตั้งขึ้นในปี", lang="th"),
    **{path: page(f"Old {path}", text=f"what {path} had to report") for path in OLD},
    "/new": page("New", text="found by the second crawl"),
    LEASED: page("Slow", text="a page that takes its time"),
}
_BLOG: Mapping[str, Route] = {
    "/": page("Blog", text="what is new", links=["/post/1", "/post/2"]),
    **{f"/post/{n}": page(f"Post {n}", text=f"post {n} of the blog") for n in (1, 2)},
    **{path: page(f"Late {path}", text=f"what {path} has to report") for path in LATE},
}
