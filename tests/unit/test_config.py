"""Settings and collection files: what is read, and the sentence for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace import config, site_table
from crawlspace import settings as defaults
from crawlspace.config import known_names, load_collection, read_settings_file
from crawlspace.errors import ConfigError, CrawlspaceError, SettingError, UnknownCollection
from crawlspace.readers import duration, integer

SCRAPY = {"DOWNLOAD_DELAY": 0, "RETRY_TIMES": 2}


def settings(folder: Path, **own: object) -> dict[str, object]:
    all_defaults = {name: value for name, value in vars(defaults).items() if name.isupper()}
    return {
        **all_defaults,
        **SCRAPY,
        "CRAWLSPACE_COLLECTIONS_DIR": str(folder),
        "CRAWLSPACE_DATA_DIR": str(folder / "data"),
        **own,
    }


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "start_urls.txt").write_text("# comment\nhttp://a.example/  shift=-1\n\nhttp://[2001:db8::1]:8080/x\n")
    (tmp_path / "demo" / "crawl.rules").write_text("allow domain *.example\nforbid domain *\n")
    return tmp_path


def test_a_collection_is_read(collections: Path) -> None:
    demo = load_collection("demo", settings(collections, DEPTH_LIMIT="3", CRAWLSPACE_REFRESH_MIN="12h"))
    assert [(start.url.text, start.shift, start.where) for start in demo.start_urls] == [
        ("http://a.example/", -1, "start_urls.txt:2"),
        ("http://[2001:db8::1]:8080/x", 0, "start_urls.txt:4"),
    ]
    assert demo.limits.max_link_depth == 3
    assert demo.policy.refresh_min_s == 43_200
    assert demo.store_file == collections / "data" / "demo" / "state.db"


SITES = {
    "slow.example": {"delay": 2, "concurrency": 1},
    "*.example:8080": {"max_path_depth": 6},
    "*.example": {"concurrency": 3},
}
PACES = [
    # host, port, delay, concurrency, path depth
    ("slow.example", 80, 2, 1, None),
    ("fast.example", 80, 0, 3, None),
    ("fast.example", 8080, 0, 8, 6),
    ("other.test", 80, 0, 8, None),
]


@pytest.mark.parametrize(("host", "port", "delay", "concurrency", "depth"), PACES)
def test_sites_first_match(collections: Path, host: str, port: int, delay: float, concurrency: int, depth: int | None) -> None:
    site = load_collection("demo", settings(collections, CRAWLSPACE_SITES=SITES)).sites.of(host, port)
    assert (site.delay_s, site.concurrency, site.limits.max_path_depth) == (delay, concurrency, depth)


def test_a_delay_means_one_request_at_a_time(collections: Path) -> None:
    demo = load_collection("demo", settings(collections, DOWNLOAD_DELAY="500"))
    assert demo.sites.of("a.example", 80).concurrency == 1


WRONG = [
    # setting, value, what the sentence says
    ("CRAWLSPACE_MAX_PATH_DEEPTH", 3, "unknown setting CRAWLSPACE_MAX_PATH_DEEPTH: did you mean CRAWLSPACE_MAX_PATH_DEPTH?"),
    ("CRAWLSPACE_QQQQQQQQQQQQQQQQQQQQQQQQ", 3, "unknown setting CRAWLSPACE_QQQQQQQQQQQQQQQQQQQQQQQQ: docs/settings.md lists them all"),
    ("CRAWLSPACE_MAX_PATH_DEPTH", -1, "CRAWLSPACE_MAX_PATH_DEPTH is -1; it must be at least 0"),
    ("CRAWLSPACE_MAX_PATH_DEPTH", "deep", "CRAWLSPACE_MAX_PATH_DEPTH is 'deep'; it must be a whole number at least 0"),
    ("URLLENGTH_LIMIT", 5, "URLLENGTH_LIMIT is 5; it must be from 16 to 65536"),
    ("CRAWLSPACE_LEASE_S", "soon", "CRAWLSPACE_LEASE_S is 'soon'; it must be seconds, or text like"),
    ("DOWNLOAD_DELAY", "-1", "DOWNLOAD_DELAY is '-1'; it must be at least 0 s"),
    ("CRAWLSPACE_REFRESH_MIN", "60d", "CRAWLSPACE_REFRESH_MIN (5184000 s) is above CRAWLSPACE_REFRESH_MAX (2592000 s)"),
    ("CRAWLSPACE_SCHEMES", ["http", "ftp"], "CRAWLSPACE_SCHEMES is ['http', 'ftp']; it may hold http, https"),
    ("ROBOTSTXT_OBEY", "perhaps", "ROBOTSTXT_OBEY is 'perhaps'; it must be True or False"),
    ("CRAWLSPACE_SITES", {"a": {"dely": 1}}, "CRAWLSPACE_SITES['a'] has an unknown key 'dely': did you mean 'delay'?"),
    ("CRAWLSPACE_SITES", {"a": 3}, "CRAWLSPACE_SITES['a'] is 3; it must be like"),
    ("CRAWLSPACE_SITES", "a", "CRAWLSPACE_SITES is 'a'; it must be like"),
    ("CRAWLSPACE_SITES", {"a": {"delay": -1}}, "CRAWLSPACE_SITES['a']['delay'] is -1; it must be at least 0 s"),
    ("ITEM_PIPELINES", {}, "ITEM_PIPELINES has no pipelines.dedupe.Fingerprint, without which nothing is recorded"),
    ("CONCURRENT_REQUESTS", "many", "CONCURRENT_REQUESTS is 'many'; it must be a whole number at least 1"),
    ("USER_AGENT", "", "USER_AGENT is ''; it must be a text"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG, ids=[f"{row[0]}-{row[1]}" for row in WRONG])
def test_wrong_settings(collections: Path, name: str, value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        load_collection("demo", settings(collections, **{name: value}))
    assert sentence in str(caught.value)


WRONG_FILES = [
    # file, content, what the sentence says
    (
        "start_urls.txt",
        "www.ibm.com\n",
        "start_urls.txt:1:1: a start URL begins with http:// or https://, as in http://www.ibm.com",
    ),
    ("start_urls.txt", "http://a/\n http://b:99999/ \n", "start_urls.txt:2:2: 'http://b:99999/' is not an absolute URL"),
    ("start_urls.txt", "http://a/ shift=3\n", "start_urls.txt:1:11: unexpected 'shift=3'"),
    ("start_urls.txt", f"http://a:{'9' * 1000}/\n", "is not an absolute URL"),
    ("start_urls.txt", "# nothing\n", "collection 'demo' has no start URL"),
    ("crawl.rules", "alow domain x\n", "crawl.rules:1:1: "),
    ("settings.py", "A = 1\nB = (\n", "settings.py:2: '(' was never closed"),
    ("settings.py", "A = 1\nB = 1 / 0\n", "settings.py:2: ZeroDivisionError: division by zero"),
]


@pytest.mark.parametrize(("file", "content", "sentence"), WRONG_FILES)
def test_wrong_files(collections: Path, file: str, content: str, sentence: str) -> None:
    (collections / "demo" / file).write_text(content)
    with pytest.raises(ConfigError) as caught:
        _read_all(collections)
    assert sentence in str(caught.value)


def _read_all(collections: Path) -> None:
    read_settings_file(collections / "demo")
    load_collection("demo", settings(collections))


def test_all_start_url_mistakes_are_told_at_once(collections: Path) -> None:
    (collections / "demo" / "start_urls.txt").write_text("a\nb\nhttp://c/\n")
    with pytest.raises(ConfigError) as caught:
        load_collection("demo", settings(collections))
    assert "start_urls.txt:1:1" in str(caught.value)
    assert "start_urls.txt:2:1" in str(caught.value)


UNKNOWN = [
    ("dmo", "no collection 'dmo' in {}: did you mean 'demo'?"),
    ("zzz", "no collection 'zzz' in {}: there are: demo"),
    ("../demo", "no collection '../demo' in {}"),
]


@pytest.mark.parametrize(("name", "sentence"), UNKNOWN)
def test_unknown_collections(collections: Path, name: str, sentence: str) -> None:
    with pytest.raises(UnknownCollection) as caught:
        load_collection(name, settings(collections))
    assert sentence.format(collections) in str(caught.value)


DURATIONS = [
    (90, 90.0),
    ("90", 90.0),
    ("90s", 90.0),
    ("30m", 1800.0),
    ("12h", 43_200.0),
    ("7d", 604_800.0),
    ("1.5 h", 5400.0),
    (0.25, 0.25),
]


@pytest.mark.parametrize(("value", "seconds"), DURATIONS)
def test_durations(value: object, seconds: float) -> None:
    assert duration("X", value) == seconds


@pytest.mark.parametrize("value", ["", "5 parsecs", None, True, "nan", float("nan"), float("inf"), []])
def test_no_durations(value: object) -> None:
    with pytest.raises(CrawlspaceError, match="X is "):
        duration("X", value)


@pytest.mark.parametrize("value", ["", "5.5", None, True, 5.5, [], "５x"])
def test_no_whole_numbers(value: object) -> None:
    with pytest.raises(CrawlspaceError, match="X is "):
        integer("X", value)


def test_every_setting_of_ours_is_read() -> None:
    source = Path(config.__file__).read_text(encoding="utf-8") + Path(site_table.__file__).read_text(encoding="utf-8")
    assert [name for name in known_names() if f'"{name}"' not in source] == []
