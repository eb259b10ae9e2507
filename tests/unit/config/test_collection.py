"""Settings and collection files: what is read, and the sentence for what is wrong."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.config import collection, credential_headers, sites
from crawlspace.config import files as collection_files
from crawlspace.config.collection import RefreshMode, collection_names, known_names, load_collection, read_settings_file
from crawlspace.content import soft_errors
from crawlspace.errors import ConfigError, CrawlspaceError, RuleFileError, SettingError, UnknownCollection
from crawlspace.frontier import source_weights
from crawlspace.parsing import duration, integer
from crawlspace.state import error_policy
from crawlspace.state.error_policy import ErrorRule

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


def test_how_errors_deletions_and_refreshes_are_set(collections: Path) -> None:
    demo = load_collection("demo", settings(collections))
    assert (demo.continuous, demo.refresh_cycle_s, demo.refresh_mode) == (False, 0, RefreshMode.APPEND)
    assert (demo.max_deletions, demo.max_deletions_percent) == (100, 10)
    assert (demo.policy.host_fetches, demo.policy.host_failed_percent) == (20, 50)
    assert demo.policy.error_rules.of(404) is None
    assert not demo.soft_errors
    own = {
        "CRAWLSPACE_CONTINUOUS": "true",
        "CRAWLSPACE_REFRESH_MODE": "Soft",
        "CRAWLSPACE_MAX_DELETIONS": 0,
        "CRAWLSPACE_MAX_DELETIONS_PERCENT": "100",
        "CRAWLSPACE_HOST_FETCHES": 60,
        "CRAWLSPACE_HOST_FAILURES_PERCENT": 1,
        "CRAWLSPACE_HTTP_ERRORS": {"4xx": "DELETE:2"},
        "CRAWLSPACE_SOFT_ERRORS": [("*/x", "", "", 404)],
    }
    demo = load_collection("demo", settings(collections, **own))
    assert (demo.continuous, demo.refresh_mode) == (True, RefreshMode.SOFT)
    assert (demo.max_deletions, demo.max_deletions_percent) == (0, 100)
    assert (demo.policy.host_fetches, demo.policy.host_failed_percent) == (60, 1)
    assert demo.policy.error_rules.of(404) == ErrorRule(keep=False, after=2)
    assert demo.soft_errors.status_of("http://a/x", title="", text="") == 404


@pytest.mark.parametrize("value", [0.5, "0.5", 30, "30", 1e-3])
def test_a_time_out_is_a_number_of_seconds_as_for_scrapy(collections: Path, value: object) -> None:
    load_collection("demo", settings(collections, DOWNLOAD_TIMEOUT=value))


CYCLES = [(0, 0), (30, 1800), ("30", 1800), (0.5, 30), ("90s", 90), ("30m", 1800), ("12h", 43_200)]


@pytest.mark.parametrize(("minutes", "seconds"), CYCLES)
def test_a_cycle_is_minutes_or_has_a_unit(collections: Path, minutes: object, seconds: int) -> None:
    assert load_collection("demo", settings(collections, CRAWLSPACE_REFRESH_CYCLE=minutes)).refresh_cycle_s == seconds


YIELDS = [
    # setting, value; whether a page that has not changed may yield something else with it
    ("CRAWLSPACE_LINK_TAGS", ["a"], True),
    ("CRAWLSPACE_LINK_TAGS", ["meta", "link", "iframe", "frame", "area", "a"], False),
    ("CRAWLSPACE_MAX_LINKS", 3, True),
    ("CRAWLSPACE_CHECKSUM_CUT_OFF", 3, True),
    ("CRAWLSPACE_CHECKSUM_TITLE", False, True),
    ("CRAWLSPACE_META_ROBOTS", False, True),
    ("CRAWLSPACE_META_ROBOTS", True, False),
    ("ROBOTSTXT_OBEY", False, True),
    ("USER_AGENT", "other/1", True),
    ("USER_AGENT", "crawlspace/99 (+http://www.example.com/)", False),
    ("CRAWLSPACE_SOFT_ERRORS", [("", "a", "", 404)], True),
    ("CRAWLSPACE_HTTP_ERRORS", {"404": "KEEP"}, False),
    ("CRAWLSPACE_REFRESH_MIN", "2d", False),
    ("DOWNLOAD_DELAY", 9, False),
]


@pytest.mark.parametrize(("name", "value", "differs"), YIELDS, ids=[f"{row[0]}-{row[1]}" for row in YIELDS])
def test_the_content_hash_differs_where_pages_may_yield_something_else(
    collections: Path, name: str, value: object, differs: bool
) -> None:
    before = load_collection("demo", settings(collections)).content_hash
    after = load_collection("demo", settings(collections, **{name: value})).content_hash
    assert (after != before) is differs


GLOBAL = [
    # files -> file that is read, its rules
    ({}, None, None),
    ({"global.rules": "allow domain shared\n"}, "global.rules", ["shared"]),
    ({"global.rules": "allow domain shared\n", "demo/global.rules": "allow domain own\n"}, "demo/global.rules", ["own"]),
    ({"demo/global.rules": "# nothing\n"}, "demo/global.rules", []),
    ({"named.rules": "allow domain named:8080\n", "demo/global.rules": ""}, "named.rules", ["named:8080"]),
]


@pytest.mark.parametrize(("files", "file", "targets"), GLOBAL)
def test_the_global_crawl_space(collections: Path, files: dict[str, str], file: str | None, targets: list[str] | None) -> None:
    write(collections, files)
    named = {"CRAWLSPACE_GLOBAL_RULES": str(collections / "named.rules")} if "named.rules" in files else {}
    demo = load_collection("demo", settings(collections, **named))
    assert demo.global_file == (None if file is None else collections / file)
    assert (None if demo.global_rules is None else [rule.target for rule in demo.global_rules.domain]) == targets


def test_the_file_of_the_global_crawl_space_is_no_collection(collections: Path) -> None:
    write(collections, {"global.rules": ""})
    assert collection_names(collections) == ["demo"]


# what stands in the way of a global.rules -> what the sentence says; it is never taken for one that isn't there
NO_GLOBAL = [
    ({"global.rules": "allow prefix http://a/\n"}, ["global.rules:1:7: a prefix rule cannot stand in global.rules"]),
    ({"demo/global.rules": "allow domain a\nforbid address 10.0.0.0/8\n"}, ["global.rules:2:8: an address rule cannot stand in"]),
    (
        {"global.rules": "allow http://a/\nalow domain b\n", "demo/crawl.rules": "forbid domain\n"},
        ["crawl.rules:1:14: ", "global.rules:1:7: ", "global.rules:2:1: expected 'allow' or 'forbid', not 'alow'"],
    ),
    ({"global.rules/x": ""}, ["global.rules is not a regular file but a directory; put a text file in its place, or remove it"]),
]


@pytest.mark.parametrize(("files", "sentences"), NO_GLOBAL)
def test_a_wrong_global_crawl_space(collections: Path, files: dict[str, str], sentences: list[str]) -> None:
    write(collections, files)
    with pytest.raises(ConfigError) as caught:
        load_collection("demo", settings(collections))
    assert [sentence for sentence in sentences if sentence not in str(caught.value)] == []
    if isinstance(caught.value, RuleFileError):
        assert len(caught.value.mistakes) == len(sentences)


OF_A_COLLECTION = ("demo/crawl.rules", "demo/rules.xml", "demo/start_urls.txt", "demo/settings.py")
FILES = ("global.rules", "demo/global.rules", *OF_A_COLLECTION)


@pytest.mark.parametrize("file", FILES)
def test_a_link_that_leads_nowhere_is_no_missing_file(collections: Path, file: str) -> None:
    (collections / file).unlink(missing_ok=True)
    (collections / file).symlink_to(collections / "moved")
    with pytest.raises(ConfigError, match=rf"{file} cannot be read: No such file"):
        _read_all(collections)


@pytest.mark.parametrize("file", FILES)
def test_what_is_no_regular_file_is_not_waited_for(collections: Path, file: str) -> None:
    (collections / file).unlink(missing_ok=True)
    os.mkfifo(collections / file)
    with pytest.raises(
        ConfigError, match=rf"{file} is not a regular file but a pipe; put a text file in its place, or remove it"
    ):
        _read_all(collections)


@pytest.mark.parametrize("file", OF_A_COLLECTION)
def test_a_folder_that_may_not_be_entered(collections: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, collections / file)
    with pytest.raises(ConfigError, match=rf"{file} cannot be read: Permission denied"):
        _read_all(collections)


def test_collections_that_may_not_be_listed(collections: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, collections)
    with pytest.raises(ConfigError, match=rf"{collections}, where the collections are, cannot be read: Permission denied"):
        load_collection("demo", settings(collections))
    with pytest.raises(ConfigError, match="cannot be read: Not a directory"):
        collection_names(collections / "demo" / "crawl.rules")
    assert collection_names(collections / "none") == []


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
    ("DOWNLOAD_TIMEOUT", 0, "DOWNLOAD_TIMEOUT is 0; it must be a number of seconds above 0, without a unit"),
    ("DOWNLOAD_TIMEOUT", "30s", "DOWNLOAD_TIMEOUT is '30s'; it must be a number of seconds"),
    ("DOWNLOAD_TIMEOUT", float("inf"), "DOWNLOAD_TIMEOUT is inf; it must be a number of seconds"),
    ("DOWNLOAD_TIMEOUT", True, "DOWNLOAD_TIMEOUT is True; it must be a number of seconds"),
    ("USER_AGENT", "", "USER_AGENT is ''; it must be a text"),
    ("CRAWLSPACE_HTTP_ERRORS", {"5xx": "RETRY"}, "CRAWLSPACE_HTTP_ERRORS['5xx'] is 'RETRY'; it must be like"),
    ("CRAWLSPACE_SOFT_ERRORS", [("a", 404)], "row 1 of CRAWLSPACE_SOFT_ERRORS is ('a', 404); it must be a URL pattern"),
    ("CRAWLSPACE_CONTINUOUS", "always", "CRAWLSPACE_CONTINUOUS is 'always'; it must be True or False"),
    ("CRAWLSPACE_REFRESH_CYCLE", -1, "CRAWLSPACE_REFRESH_CYCLE is -1; it must be at least 0"),
    ("CRAWLSPACE_REFRESH_CYCLE", "daily", "CRAWLSPACE_REFRESH_CYCLE is 'daily'; it must be minutes, or text like"),
    ("CRAWLSPACE_REFRESH_MODE", "hard", "CRAWLSPACE_REFRESH_MODE is 'hard'; it must be one of scratch, append, prioritized, soft"),
    ("CRAWLSPACE_REFRESH_MODE", None, "CRAWLSPACE_REFRESH_MODE is None; it must be one of"),
    ("CRAWLSPACE_MAX_DELETIONS", -1, "CRAWLSPACE_MAX_DELETIONS is -1; it must be at least 0"),
    ("CRAWLSPACE_MAX_DELETIONS_PERCENT", 101, "CRAWLSPACE_MAX_DELETIONS_PERCENT is 101; it must be from 0 to 100"),
    ("CRAWLSPACE_HOST_FETCHES", 61, "CRAWLSPACE_HOST_FETCHES is 61; it must be from 1 to 60"),
    ("CRAWLSPACE_HOST_FAILURES_PERCENT", 0, "CRAWLSPACE_HOST_FAILURES_PERCENT is 0; it must be from 1 to 100"),
    ("CRAWLSPACE_GLOBAL_RULES", "no/such.rules", "CRAWLSPACE_GLOBAL_RULES is 'no/such.rules', and there is no such file"),
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


LATIN_1 = "# Bücher\n\tforbid domain *.bücher.example\r\nalow domain b\n".encode("latin-1")
ENCODED = [
    # file, content, what the sentences begin with
    (
        "crawl.rules",
        LATIN_1,
        [
            "crawl.rules:1:4: this is not UTF-8; save the file as UTF-8\n    # B\ufffdcher\n       ^",
            "crawl.rules:3:1: expected",
        ],
    ),
    (
        "global.rules",
        b"allow domain a\r\xff\r",
        ["global.rules:2:1: this is not UTF-8; save the file as UTF-8\n    \ufffd\n    ^"],
    ),
    (
        "start_urls.txt",
        b"http://a/\n# \xc3\xa4\xed\xa0\x80\nwww.a\nhttp://\xe4/\n",
        ["start_urls.txt:2:4: this is not UTF-8", "start_urls.txt:3:1: a start URL begins with"],
    ),
    (
        "start_urls.txt",
        b"http://me:secret@h/\xe4",
        ["start_urls.txt:1:20: this is not UTF-8; save the file as UTF-8\n    http://…@h/\ufffd\n"],
    ),
    ("crawl.rules", b"alow domain a\n\xff", ["crawl.rules:1:1: expected 'allow'", "crawl.rules:2:1: this is not UTF-8"]),
    ("start_urls.txt", "\ufeffhttp://ä/\u2028".encode(), []),
    ("crawl.rules", "forbid domain ä\n".encode("utf-16"), ["crawl.rules:1:1: the file is in UTF-16; save it as UTF-8"]),
    ("crawl.rules", "forbid domain ä\n".encode("utf-16-le"), ["crawl.rules:1:1: the file is in UTF-16; save it as UTF-8"]),
    ("crawl.rules", "forbid domain ä\n".encode("utf-32"), ["crawl.rules:1:1: the file is in UTF-32; save it as UTF-8"]),
]


@pytest.mark.parametrize(("file", "content", "sentences"), ENCODED)
def test_an_encoding_is_a_mistake_beside_the_others(collections: Path, file: str, content: bytes, sentences: list[str]) -> None:
    (collections / "demo" / file).write_bytes(content)
    told: list[str] = []
    try:
        load_collection("demo", settings(collections))
    except RuleFileError as error:
        told = [str(mistake) for mistake in error.mistakes]
    assert [one[: len(begin)] for one, begin in zip(told, sentences, strict=True)] == sentences


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
    readers = (collection, collection_files, sites, error_policy, soft_errors, source_weights, credential_headers)
    source = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in readers)
    assert [name for name in known_names() if f'"{name}"' not in source] == []


def forbid(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Have the system refuse to look at a path, as it refuses nothing to root."""

    def refused(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(at: object, *args: object, **named: object) -> object:
            if str(at) == str(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real(at, *args, **named)

        return call

    for name in ("stat", "lstat", "scandir"):
        monkeypatch.setattr(os, name, refused(name, getattr(os, name)))


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
