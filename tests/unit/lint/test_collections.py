"""What lint finds in several collections together."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.lint.collections import CollectionHosts, collection_hosts, lint_collections, with_collection
from crawlspace.lint.finding import Finding, bounded
from tests.unit.lint.linted import collections_of, store_of

END = "forbid domain *\n"
SHARED = "CRAWLSPACE_SINKS = {'local': {'type': 'sqlite', 'file': 'shared.db'}}\n"
A, B = "http://a.example/\n", "http://b.example/\n"
ALLOW_A, ALLOW_B, ALLOW_BOTH = (f"allow domain {host}\n{END}" for host in ("a.example", "b.example", "*.example"))
ONE = {"one/start_urls.txt": A, "one/crawl.rules": ALLOW_A}
TWO = {"two/start_urls.txt": B, "two/crawl.rules": ALLOW_B}
ONE_INDEX = {"one/settings.py": SHARED, "two/settings.py": SHARED}
BOTH_HOSTS = {"global.rules": "allow domain a.example\nallow domain b.example\n"}


def on_server(url: str, index: str = "intranet") -> str:
    return f"CRAWLSPACE_SINKS = {{'search': {{'type': 'opensearch', 'url': '{url}', 'index': '{index}'}}}}\n"


ON_SERVER = {"one/settings.py": on_server("https://search.example:443/"), "two/settings.py": on_server("https://Search.example")}
OWNED = "collections may share it, but a document belongs to the one that pushed it last, so that these change hands"


# files -> place and code of each finding, and what it names
ACROSS: list[tuple[str, dict[str, str], list[tuple[str, str]]]] = [
    ("nothing in common", {**ONE, **TWO}, []),
    ("a global crawl space, well divided", {**ONE, **TWO, **ONE_INDEX, **BOTH_HOSTS}, []),
    (
        "one start URL, two indexes",
        {**ONE, "two/start_urls.txt": f"# here\n{B}{A}"},
        [("two/start_urls.txt:3:1 start-url-twice", "http://a.example/ is a start URL of another collection too (one/start_urls.txt:1)")],
    ),
    (
        "one start URL, one global crawl space",
        {**ONE, "two/start_urls.txt": B + A, "two/crawl.rules": ALLOW_BOTH, **BOTH_HOSTS},
        [("two/crawl.rules:1:14 crawled-twice", "a.example: crawled by one too (one/crawl.rules:1)")],
    ),
    ("one host, two indexes", {**ONE, "two/start_urls.txt": B, "two/crawl.rules": ALLOW_BOTH}, []),
    ("one index on a server, well divided", {**ONE, **TWO, **ON_SERVER}, []),
    (
        "one host, one index on a server",
        {**ONE, **TWO, "two/crawl.rules": ALLOW_BOTH, **ON_SERVER},
        [
            (
                "two/crawl.rules:1:14 crawled-twice",
                f"a.example: crawled by one too (one/crawl.rules:1), and both write to the index intranet at https://search.example/: {OWNED}",
            )
        ],
    ),
    (
        "one host, two indexes on a server",
        {**ONE, **TWO, "two/crawl.rules": ALLOW_BOTH, **ON_SERVER, "two/settings.py": on_server("https://search.example", "others")},
        [],
    ),
    (
        "one host, two servers",
        {**ONE, **TWO, "two/crawl.rules": ALLOW_BOTH, **ON_SERVER, "two/settings.py": on_server("https://search.example:9200")},
        [],
    ),
    (
        "one host, one index on a server, and one global crawl space",
        {**ONE, **TWO, "two/crawl.rules": ALLOW_BOTH, **BOTH_HOSTS, **ON_SERVER},
        [("two/crawl.rules:1:14 crawled-twice", "a.example: crawled by one too (one/crawl.rules:1), so that each refreshes")],
    ),
    (
        "one host by a rule with a star, one index",
        {**ONE, **TWO, "two/crawl.rules": ALLOW_BOTH, **ONE_INDEX, **BOTH_HOSTS},
        [("two/crawl.rules:1:14 crawled-twice", "a.example: crawled by one too (one/crawl.rules:1)")],
    ),
    (
        "one host forbidden again",
        {**ONE, **TWO, "two/crawl.rules": f"forbid domain a.example\n{ALLOW_BOTH}", **ONE_INDEX, **BOTH_HOSTS},
        [],
    ),
    (
        "no rules at all name no host of the other",
        {**ONE, "two/start_urls.txt": B, **ONE_INDEX, **BOTH_HOSTS},
        [],
    ),
    (
        "a start URL is crawled without rules",
        {**ONE, "two/start_urls.txt": "http://a.example/x\n", "two/crawl.rules": "allow domain *\n", **ONE_INDEX, "global.rules": "allow domain *\n"},
        [("two/start_urls.txt:1:1 crawled-twice", "a.example: crawled by one too (one/crawl.rules:1)")],
    ),
    (
        "one host, two ports",
        {
            "one/start_urls.txt": A,
            "one/crawl.rules": f"allow domain a.example:80\n{END}",
            "two/start_urls.txt": "http://a.example:8080/\n",
            "two/crawl.rules": f"allow domain a.example:8080\n{END}",
            **ONE_INDEX,
            **BOTH_HOSTS,
        },
        [("global.rules:2:14 global-uncrawled", "b.example: allowed by 'allow domain b.example' and crawled by no collection")],
    ),
    (
        "one port of a host that has all",
        {**ONE, "two/start_urls.txt": "http://a.example:8080/\n", "two/crawl.rules": f"allow domain a.example:8080\n{END}", **ONE_INDEX,
         "global.rules": "allow domain a.example\n"},
        [("two/crawl.rules:1:14 crawled-twice", "a.example:8080: crawled by one too (one/crawl.rules:1)")],
    ),
    (
        "hosts of the start URLs only",
        {**ONE, **TWO, "two/crawl.rules": ALLOW_BOTH, "two/settings.py": "CRAWLSPACE_FOLLOW_OFFSITE_LINKS = False\n", **BOTH_HOSTS},
        [],
    ),
    (
        "many hosts by one rule",
        {
            "one/start_urls.txt": "".join(f"http://h{n}.example/\n" for n in range(5)),
            "one/crawl.rules": ALLOW_BOTH,
            "two/start_urls.txt": B,
            "two/crawl.rules": ALLOW_BOTH,
            **ONE_INDEX,
            "global.rules": "allow domain *\n",
        },
        [
            ("two/crawl.rules:1:14 crawled-twice", "b.example, h0.example, h1.example and 3 more: crawled by one too (one/crawl.rules:1)"),
        ],
    ),
    (
        "one index, no global crawl space",
        {**ONE, **TWO, **ONE_INDEX},
        [("two/settings.py:1:1 index-shared", "the index shared.db is one's too, and the two have no global.rules in common")],
    ),
    (
        "one index, two global crawl spaces",
        {**ONE, **TWO, **ONE_INDEX, **BOTH_HOSTS, "two/global.rules": "allow domain b.example\n"},
        [
            (
                "two/global.rules:1:14 global-differs",
                "'allow domain b.example' here, 'allow domain a.example' in global.rules:1: these copies of global.rules are one global",
            ),
            ("two/settings.py:1:1 index-shared", "the index shared.db is one's too"),
        ],
    ),
    (
        "one global crawl space in two copies",
        {**ONE, **TWO, **ONE_INDEX, "one/global.rules": "# all\nallow domain a.example\n\nAllow  domain b.example\n",
         "two/global.rules": "allow domain a.example\nallow domain b.example\n"},
        [],
    ),
    (
        "what one finds in a global crawl space is told once of all its copies",
        {**ONE, **TWO, "one/global.rules": "#\nallow domain *.example\nallow domain c.other\n", "two/global.rules": "allow domain *.example\nallow domain c.other\n",
         "two/crawl.rules": ALLOW_BOTH},
        [
            ("two/crawl.rules:1:14 crawled-twice", "a.example: crawled by one too (one/crawl.rules:1)"),
            ("one/global.rules:3:14 global-uncrawled", "c.other: allowed by 'allow domain c.other' and crawled by no collection"),
        ],
    ),
    (
        "a copy without the last rule",
        {**ONE, **TWO, "one/global.rules": "allow domain a.example\n# b\nallow domain b.example\n", "two/global.rules": "allow domain *.example\n",
         "three/start_urls.txt": A, "three/crawl.rules": f"forbid domain b.example\n{ALLOW_BOTH}",
         "three/global.rules": "allow domain *.example\nallow domain *.x\n", "two/crawl.rules": f"allow domain b.example\n{END}"},
        [
            ("three/start_urls.txt:1:1 start-url-twice", ""),
            ("three/global.rules:1:14 global-differs", "'allow domain *.example' here, 'allow domain a.example' in one/global.rules:1:"),
            ("two/global.rules:1:14 global-differs", "'allow domain *.example' here, 'allow domain a.example' in one/global.rules:1:"),
        ],
    ),
    (
        "a copy that ends earlier",
        {**ONE, **TWO, **BOTH_HOSTS, "one/global.rules": "allow domain a.example\n"},
        [("one/global.rules:0:0 global-differs", "no further rule here, 'allow domain b.example' in global.rules:2: these copies")],
    ),
    (
        "two global crawl spaces that are meant",
        {**ONE, **TWO, "one/global.rules": "allow domain a.example\n", "two/own.rules": "allow domain b.example\n",
         "two/settings.py": "from pathlib import Path\nCRAWLSPACE_GLOBAL_RULES = str(Path(__file__).with_name('own.rules'))\n"},
        [],
    ),
    (
        "crawled outside of the global crawl space",
        {"one/start_urls.txt": f"{A}http://c.other:8080/\n{B}", "one/crawl.rules": "allow domain a.example\nallow domain d.example\nallow domain e.example:81\nallow domain e.example\nallow domain *\n",
         "global.rules": "forbid domain d.*\nallow domain *.example:80\n"},
        [
            ("one/crawl.rules:2:14 outside-global", "d.example: crawled by one and not allowed by global.rules"),
            ("one/crawl.rules:3:14 outside-global", "e.example:81: crawled by one and not allowed by global.rules"),
            ("one/start_urls.txt:2:1 outside-global", "c.other:8080: crawled by one and not allowed by global.rules"),
        ],
    ),
    (
        "a global host that none crawls",
        {**ONE, "global.rules": "# all\nallow domain b.example\nallow domain a.example\nallow domain c.example:8080\nallow domain *.d\n"},
        [
            ("global.rules:2:14 global-uncrawled", "b.example: allowed by 'allow domain b.example' and crawled by no collection"),
            ("global.rules:4:14 global-uncrawled", "c.example:8080: allowed by"),
        ],
    ),
    (
        "a global host that is forbidden before",
        {**ONE, "global.rules": "forbid domain b.*\nallow domain b.example\nallow domain *\n"},
        [],
    ),
    (
        "a global host that another collection crawls by a star",
        {**ONE, "two/start_urls.txt": B, "two/crawl.rules": f"forbid domain a.example\n{ALLOW_BOTH}", "one/global.rules": "allow domain b.example\n"},
        [("one/crawl.rules:1:14 outside-global", "a.example: crawled by one and not allowed by one/global.rules")],
    ),
    (
        "a collection's own global.rules",
        {**ONE, **TWO, "one/global.rules": "allow domain c.example\n"},
        [
            ("one/crawl.rules:1:14 outside-global", "a.example: crawled by one and not allowed by one/global.rules"),
            ("one/global.rules:1:14 global-uncrawled", "c.example: allowed by"),
        ],
    ),
    (
        "a global host on another port",
        {"one/start_urls.txt": "http://a.example:8080/\n", "one/crawl.rules": f"allow domain a.example:8080\n{END}",
         "global.rules": "allow domain a.example\n"},
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("files", "findings"), [row[1:] for row in ACROSS], ids=[row[0] for row in ACROSS])
def test_across(tmp_path: Path, files: dict[str, str], findings: list[tuple[str, str]]) -> None:
    reported = list(lint_collections([CollectionHosts(one) for one in collections_of(tmp_path, files)]))
    assert [f"{one.file}:{one.line}:{one.column} {one.code}" for one in reported] == [place for place, _ in findings]
    assert [
        one.message for one, (_, sentence) in zip(reported, findings, strict=True) if not one.message.startswith(sentence)
    ] == []


def test_hosts_that_no_collection_crawls_are_not_reported_where_one_cannot_be_read(tmp_path: Path) -> None:
    (one,) = collections_of(tmp_path, {**ONE, **BOTH_HOSTS})
    assert list(lint_collections([CollectionHosts(one)], complete=False)) == []


# URLs known to collection `one`, with their status -> findings; the global crawl space is *.example
KNOWN_HOSTS = [
    ({"http://a.example/": 200}, []),
    ({"http://b.example/": 200}, []),
    ({"http://c.example/": 761}, ["global.rules:1:14 global-uncrawled c.example"]),
    ({"http://c.example:8080/": 761, "http://d.example/": 761}, ["global.rules:1:14 global-uncrawled c.example:8080, d.example"]),
    ({"http://c.example/": 200}, ["global.rules:1:14 global-uncrawled c.example"]),  # the rules have just been changed
    ({"http://c.example/": 760}, []),
    ({"http://c.other/": 761}, []),
    ({"http://b.example/": 761}, []),
]


@pytest.mark.parametrize(("known", "findings"), KNOWN_HOSTS)
def test_hosts_that_were_crawled_once(tmp_path: Path, known: dict[str, int], findings: list[str]) -> None:
    one, two = collections_of(tmp_path, {**ONE, **TWO, "global.rules": "allow domain *.example\n"})
    reported = lint_collections([collection_hosts(one, store_of(known)), collection_hosts(two, None)])
    assert [
        f"{each.file}:{each.line}:{each.column} {each.code} {each.message.partition(': ')[0]}" for each in reported
    ] == findings


def test_a_host_that_both_have_found(tmp_path: Path) -> None:
    files = {**ONE, "one/crawl.rules": "", "two/start_urls.txt": B, **ONE_INDEX, "global.rules": "allow domain *\n"}
    one, two = collections_of(tmp_path, files)
    known = {"http://c.example/": 200, "http://d.example/": 760, "http://a.example/": 200}
    reported = list(lint_collections([collection_hosts(one, store_of(known)), collection_hosts(two, store_of(known))]))
    assert [(each.file, each.line, each.code) for each in reported] == [("two", 0, "crawled-twice")] * 2
    assert [each.message.partition(",")[0] for each in reported] == [
        "a.example: crawled by one too (one/start_urls.txt:1)",
        "c.example: crawled by one too (one)",
    ]


def test_findings_for_a_program_are_bounded() -> None:
    def some(file: str, count: int, *errors: int) -> list[Finding]:
        return [Finding(file, line, 1, "error" if line in errors else "warning", "x", "m") for line in range(1, count + 1)]

    few, full, many, worse = some("a", 3), some("b", 100), some("c", 31_304, 100), some("d", 102, 102)
    more = [Finding("c", 0, 0, "warning", "more", "and 31,204 more"), Finding("d", 0, 0, "error", "more", "and 2 more")]
    assert bounded([*few, *full, *many, *worse]) == [*few, *full, *many[:100], more[0], *worse[:100], more[1]]


NAMES = [
    # file of a finding, where the global.rules is -> its name among those of all collections
    ("crawl.rules", None, "demo/crawl.rules"),
    ("demo", None, "demo"),
    ("global.rules", "global.rules", "global.rules"),
    ("global.rules", "demo/global.rules", "demo/global.rules"),
    ("hosts.rules", "demo/../../hosts.rules", "{}/demo/../../hosts.rules"),
]


@pytest.mark.parametrize(("file", "global_file", "name"), NAMES)
def test_names_of_files_among_many_collections(tmp_path: Path, file: str, global_file: str | None, name: str) -> None:
    finding = Finding(file, 1, 1, "warning", "code", "message")
    shown = with_collection(finding, tmp_path / "demo", tmp_path / global_file if global_file is not None else None)
    assert shown.file == name.format(tmp_path)
