"""An export of Exalead CloudView used as rules.xml: what is not read of it is named, and refused where it narrows the crawl space."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.collection import load_collection
from crawlspace.errors import ConfigError, Mistake, RuleFileError
from crawlspace.lint.collection import lint_collection
from crawlspace.rules.xml.parser import parse_rules_xml, what_is_not_read
from tests.unit.lint.linted import DEFAULTS

RULES = '<Rules><Rule><Path val="/a/"/><NoIndex/></Rule><Rule><Path val="/"/><Accept/></Rule></Rules>'
ROOT = '<Root url="http://www.example.com/"/>'

NARROWER: list[tuple[str, str, str, dict[str, object], list[str]]] = [
    # attributes of the Crawler, what is beside the rules, crawl.rules, settings, what is refused
    ('defaultAccept="false"', "", "", {}, ["defaultAccept='false' of Crawler"]),
    ('defaultAccept="no"', "", "", {}, ["defaultAccept='no' of Crawler"]),
    ('defaultAccept=" FALSE "', "", "", {}, ["defaultAccept=' FALSE ' of Crawler"]),
    ('defaultAccept="perhaps"', "", "", {}, ["defaultAccept='perhaps' of Crawler"]),
    ('defaultAccept="false"', "", "allow domain a\nforbid domain *", {}, ["defaultAccept='false' of Crawler"]),
    ('defaultAccept="false"', "", "", {"CRAWLSPACE_DEFAULT_ACCEPT": "False"}, []),
    ('defaultAccept="false"', "", "", {"CRAWLSPACE_DEFAULT_ACCEPT": False}, []),
    ('defaultAccept="true"', "", "", {}, []),
    ('defaultIndex="false"', "", "", {}, ["defaultIndex='false' of Crawler"]),
    ('defaultIndex="false"', "", "", {"CRAWLSPACE_DEFAULT_INDEX": False}, []),
    ('defaultFollow="0" name="x"', "", "", {}, ["defaultFollow='0' of Crawler"]),
    ('defaultFollow="0"', "", "", {"CRAWLSPACE_DEFAULT_FOLLOW": False}, []),
    ('ignoreRobotsTxt="false"', "", "", {"ROBOTSTXT_OBEY": False}, ["ignoreRobotsTxt='false' of Crawler"]),
    ('ignoreRobotsTxt="false"', "", "", {}, []),
    ('mimeTypes="text/html"', "", "", {}, ["mimeTypes='text/html' of Crawler"]),
    ('mimeTypes="text/html"', "", "", {"CRAWLSPACE_MIME_TYPES": ["text/html"]}, []),
    ('mimeTypes=""', "", "", {}, []),
    ("", ROOT * 2, "", {}, ["the roots of this export (2)"]),
    ("", ROOT, "allow domain www.example.com\nforbid domain *", {}, []),
    ("", ROOT, "allow prefix http://www.example.com/\nforbid prefix http://*", {}, []),
    ("", ROOT, "", {"CRAWLSPACE_FOLLOW_OFFSITE_LINKS": False}, []),
    ("", ROOT, "", {"CRAWLSPACE_INDEX_ENTIRE_SITE": True}, []),
    ("", f'{ROOT}<Root url="http://b/" site="false"/>', "", {}, []),
    (
        'defaultAccept="false" defaultIndex="false"',
        ROOT,
        "",
        {},
        ["defaultAccept='false' of Crawler", "defaultIndex='false' of Crawler", "the roots of this export (1)"],
    ),
    ('nthreads="4" throttleTimeMS="10" userAgent="x"', "<Fetcher/>", "", {}, []),
]


@pytest.mark.parametrize(("attributes", "beside", "rules", "settings", "refused"), NARROWER)
def test_what_narrows_the_crawl_space_stops_the_start(
    tmp_path: Path, attributes: str, beside: str, rules: str, settings: dict[str, object], refused: list[str]
) -> None:
    folder = collection(tmp_path, f"<CrawlConfig>\n<Crawler {attributes}>{beside}{RULES}</Crawler></CrawlConfig>", rules)
    values = {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path), **settings}
    mistakes: list[Mistake] = []
    try:
        load_collection("demo", values)
    except RuleFileError as error:
        mistakes += error.mistakes
    found = [mistake.message for mistake in mistakes]
    assert {(mistake.file, mistake.line) for mistake in mistakes} <= {("rules.xml", 2)}
    assert all("scrapy import-exalead" in message for message in found)
    assert [message.partition(" has no effect")[0].partition(" keep the crawl")[0] for message in found] == refused
    findings, _ = lint_collection(
        folder, {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path), **settings}, DEFAULTS, store=None
    )
    assert [one.message for one in findings if one.level == "error"] == found


MANY = " ".join(f"a{number}='x'" for number in range(25))
NOT_READ = [
    # file, what is named
    (RULES, ""),
    (f"<Crawler name='a'>{RULES}</Crawler>", ""),
    (f"<Crawler xmlns:x='urn:x' x:a='1'>{RULES}</Crawler>", ""),
    (f"<Crawler nthreads='4'>{RULES}</Crawler>", "nthreads of Crawler"),
    (f"<CrawlConfig version='1'><Crawler name='a' nthreads='4'>{RULES}</Crawler></CrawlConfig>", "nthreads of Crawler, version of CrawlConfig"),
    (f"<Crawler defaultAccept='true'>{ROOT}{ROOT}{RULES}<Fetcher password='x'/></Crawler>", "defaultAccept of Crawler, Root (2), Fetcher"),
    (f"<CrawlConfig><Crawler>{RULES}</Crawler><Crawler name='b'/></CrawlConfig>", "Crawler"),
    (
        f"<Crawler {MANY}>{RULES}</Crawler>",
        ", ".join(f"a{number} of Crawler" for number in range(20)) + " and 5 more",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "named"), NOT_READ, ids=[named[:40] for _, named in NOT_READ])
def test_what_is_not_read_is_named(tmp_path: Path, text: str, named: str) -> None:
    sentence = what_is_not_read(parse_rules_xml(text.encode(), file="rules.xml"))
    assert sentence.partition(" without ")[2].partition(";")[0] == named
    folder = collection(tmp_path, text, "allow domain a\nforbid domain *")
    findings, _ = lint_collection(folder, {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)}, DEFAULTS, store=None)
    assert [one.message for one in findings if one.code == "xml-export"] == ([sentence] if named else [])


def test_a_start_that_is_refused_names_place_and_way_out(tmp_path: Path) -> None:
    collection(tmp_path, f'<Crawler\n defaultAccept="false">{RULES}</Crawler>', "")
    with pytest.raises(ConfigError) as raised:
        load_collection("demo", {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)})
    assert str(raised.value).startswith(
        "rules.xml:1:1: defaultAccept='false' of Crawler has no effect here, so that more would be crawled; "
        "set CRAWLSPACE_DEFAULT_ACCEPT = False, or leave it out of this file; "
        "`scrapy import-exalead` makes a collection of the whole export"
    )


def collection(folder: Path, text: str, rules: str) -> Path:
    own = folder / "demo"
    own.mkdir()
    (own / "start_urls.txt").write_text("http://www.example.com/\n")
    (own / "rules.xml").write_text(text)
    (own / "crawl.rules").write_text(rules)
    return own
