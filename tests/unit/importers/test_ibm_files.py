"""The files of IBM's folder: every one is translated or reported, and no password gets out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from crawlspace.errors import ConfigError, CrawlspaceError, RuleFileError, UsageError
from crawlspace.importers.files import ImportedCollection, difference, write_files
from crawlspace.importers.ibm.folder import FileKind, list_folder, name_of, part_of
from crawlspace.importers.translation import Fate
from crawlspace.rules.xml.parser import parse_rules_xml
from tests.unit.importers.ibm_imports import CORPUS, imported, made_of

NAMES = [
    ("crawl.rules", FileKind.CRAWL_RULES),
    ("CRAWL.RULES", FileKind.CRAWL_RULES),
    ("crawl.rules.bak", FileKind.UNKNOWN),
    ("crawl.rules~", FileKind.UNKNOWN),
    ("global.rules", FileKind.GLOBAL_RULES),
    ("followindex.rules", FileKind.FOLLOW_INDEX),
    ("start_urls.txt", FileKind.START_URLS),
    ("StartURLs", FileKind.START_URLS),
    ("start.urls", FileKind.START_URLS),
    ("seeds", FileKind.START_URLS),
    ("seeds.doc", FileKind.UNKNOWN),
    ("softerrors.csv", FileKind.SOFT_ERRORS),
    ("cookies.ini", FileKind.COOKIES),
    ("httpauth.ini", FileKind.BASIC_LOGINS),
    ("basic_auth", FileKind.BASIC_LOGINS),
    ("formauth.ini", FileKind.FORM_LOGINS),
    ("authform.cfg", FileKind.FORM_LOGINS),
    ("crawler.properties", FileKind.PROPERTIES),
    ("crawler.xml", FileKind.PROPERTIES),
    ("web.conf", FileKind.PROPERTIES),
    ("crawler_settings", FileKind.PROPERTIES),
    ("readme.txt", FileKind.UNKNOWN),
    (".hidden", FileKind.UNKNOWN),
    ("dump.bin", FileKind.UNKNOWN),
]
# content of cookies.ini -> lines of the report, without its beginning
COOKIES = [
    ("a.ibm.com\tFALSE\t/\tTRUE\t0\tSID\tS3cret", "cookies.ini:1: cookies of a.ibm.com: no counterpart"),
    ("#HttpOnly_.ibm.com\tTRUE\t/\tTRUE\t0\tSID\tS3cret", "cookies.ini:1: cookies of *.ibm.com: no counterpart"),
    ("[a.ibm.com]\nSID=S3cret; path=/; secure\nLB=S3cret", "(SID, LB)"),
    ("[http://a.ibm.com:8080/x]\nSID=S3cret", "cookies.ini:2: cookies of a.ibm.com:8080: no counterpart"),
    ("Set-Cookie: SID=S3cret; domain=.ibm.com; path=/", "cookies.ini:1: cookies of *.ibm.com: no counterpart"),
    ("SID=S3cret; domain=http://[2001:::1", "1 line cannot be read (1)"),
    ("SID=S3cret", "cookies.ini:1: lines: no counterpart, because 1 line cannot be read (1)"),
    ("[a.ibm.com]\nS3cret\nS3cret S3cret", "cookies.ini:2: lines: no counterpart, because 2 lines cannot be read (2, 3)"),
    ("[]\nSID=S3cret\n[a b]\nSID=S3cret", "cookies.ini:2: lines: no counterpart, because 2 lines cannot be read (2, 4)"),
    ("S3cret\n" * 50_000, "because 50,000 lines cannot be read (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"),
]
# content of httpauth.ini -> a line of the report, and the log-ins
BASIC = {"type": "basic", "user": "anna"}
LOGINS: list[tuple[str, str, dict[str, object]]] = [
    ("https://a.ibm.com/\tanna\tS3cret", "set it", {"a.ibm.com": {**BASIC, "password": "env:DEMO_A_IBM_COM_PASSWORD"}}),
    ("https://a.ibm.com/hr/|anna|S3cret|realm", "sent to the whole site", {"a.ibm.com": {**BASIC, "password": "env:DEMO_A_IBM_COM_PASSWORD"}}),
    ("https://a.ibm.com:8443/,anna,S3cret", "set it", {"a.ibm.com:8443": {**BASIC, "password": "env:DEMO_A_IBM_COM_PASSWORD"}}),
    ("a.ibm.com/ anna S3cret", "over https only", {"a.ibm.com": {**BASIC, "password": "env:DEMO_A_IBM_COM_PASSWORD"}}),
    ("[https://a.ibm.com]\nUser Name = anna\nPassword: S3cret\nrealm=x", "httpauth.ini:2", {"a.ibm.com": {**BASIC, "password": "env:DEMO_A_IBM_COM_PASSWORD"}}),
    ("https://a.ibm.com/a anna S3cret\nhttps://a.ibm.com/b bert S3cret", "a.ibm.com has a log-in already (httpauth.ini:1)", {"a.ibm.com": {**BASIC, "password": "env:DEMO_A_IBM_COM_PASSWORD"}}),
    ("https://a.ibm.com/ IBM\\anna S3cret", "NTLM is not supported", {}),
    ("https://a.ibm.com/\tanna:S3cret", "one with a colon", {}),
    ("https:///\tanna\tS3cret", "httpauth.ini:1: log-in https:///: no counterpart", {}),
    ("http://(/\tanna\tS3cret", "'(' is not a host name", {}),
    ("S3cret", "1 line cannot be read (1)", {}),
    ("[https://a.ibm.com]\nsecret S3cret\n", "1 line cannot be read (2)", {}),
]  # fmt: skip
# content of formauth.ini -> a line of the report, and the log-ins: page, fields, form
FORMS: list[tuple[str, str, dict[str, tuple[str, dict[str, str], str]]]] = [
    (
        "[https://a.ibm.com/*]\nForm name = login\nform action = https://sso.ibm.com/do\nMethod: POST\nuserid = anna\npassword = S3cret",
        "formauth.ini:1: log-in by a form https://a.ibm.com/*: translated to a log-in by the form at https://sso.ibm.com/do",
        {"a.ibm.com": ("https://sso.ibm.com/do", {"userid": "anna", "password": "env:DEMO_SSO_IBM_COM_PASSWORD"}, 'form[name="login"]')},
    ),
    (
        "[https://a.ibm.com:8443/hr/]\nlogin url = /in\nform action = /do\nparameters = user=anna&code=S3cret\nS3cret",
        "1 line cannot be read (5): a row is a URL pattern",
        {"a.ibm.com:8443": ("https://a.ibm.com:8443/in", {"user": "anna", "code": "env:DEMO_A_IBM_COM_CODE"}, "")},
    ),
    (
        "https://a.ibm.com/*|login|/do|POST|user=anna;pw=S3cret",
        "write that page as its 'url'",
        {"a.ibm.com": ("https://a.ibm.com/do", {"user": "anna", "pw": "env:DEMO_A_IBM_COM_PW"}, 'form[name="login"]')},
    ),
    (
        "[https://b.ibm.com/]\nuser=anna\nhttps://a.ibm.com/*|f|/do|POST|user=anna&pw=S3cret",
        "translated",
        {
            "a.ibm.com": ("https://a.ibm.com/do", {"user": "anna", "pw": "env:DEMO_A_IBM_COM_PW"}, 'form[name="f"]'),
            "b.ibm.com": ("https://b.ibm.com/", {"user": "anna"}, ""),
        },
    ),
    ("https://*/|f|https://a.ibm.com/|POST|user=anna", "which hosts of anybody match", {}),
    ("https://a.ibm.com/|f|/do|POST|S3cret", "it names no field of the form with its value", {}),
    ("S3cret", "1 line cannot be read (1)", {}),
]  # fmt: skip


@pytest.mark.parametrize(("content", "line", "sites"), FORMS)
def test_log_ins_by_forms(content: str, line: str, sites: dict[str, tuple[str, dict[str, str], str]], tmp_path: Path) -> None:
    made = made_of(tmp_path, formauth__ini=content)
    assert line in report(made)
    assert "S3cret" not in report(made) + "".join(made.files.values())
    expected = {
        site: {"login": {"type": "form", "url": url, "fields": fields, **({"form": form} if form else {})}}
        for site, (url, fields, form) in sites.items()
    }
    assert settings_of(made).get("CRAWLSPACE_SITES", {}) == expected


@pytest.mark.parametrize(("folder", "name"), [("col1.WEB1", "col1_WEB1"), ("a b.c", "a_b_c"), (".x", "x"), ("web-1", "web-1")])
def test_the_name_of_a_collection_is_that_of_its_folder(folder: str, name: str) -> None:
    assert name_of(folder) == name


# content of softerrors.txt -> part of the report, and the rows
SOFT: list[tuple[str, str, list[list[object]]]] = [
    ("http://www.mysite.com/hr/*|Sorry, the page*|*|404", "translated", [["http://www.mysite.com/hr/*", "Sorry, the page*", "*", 404]]),
    ("|http://A.com|Sorry||410|", "translated", [["http://a.com/", "Sorry", "*", 410]]),
    ("*\tNot found\t\t404", "translated", [["*", "Not found", "*", 404]]),
    ('"http://A.com/X*", "Sorry, no", *, 404', "translated", [["http://a.com/X*", "Sorry, no", "*", 404]]),
    ("http://a.com*|a|b|500", "translated", [["http://a.com*", "a", "b", 500]]),
    ("*|*|*|404", "would turn every page into an error", []),
    ("http://a.com/|a|b|200", "it must be an error from 400 to 599", []),
    ("http://a.com/|a|b|gone", "its fourth field is a status code, not 'gone'", []),
    ("a," * 3 + "a" * 200_000, "this row has 1 of them", []),
    ("http://a.com/|a|b", "this row has 3 of them", []),
]  # fmt: skip


def report(made: ImportedCollection) -> str:
    return "\n".join(made.report.lines())


def settings_of(made: ImportedCollection) -> dict[str, object]:
    return {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value)
        for node in ast.parse(made.files["settings.py"]).body
        if isinstance(node, ast.Assign)
    }


@pytest.mark.parametrize(("name", "part"), NAMES)
def test_files_are_told_apart_by_their_names(name: str, part: FileKind) -> None:
    assert part_of(name) is part


def test_every_file_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "mc"
    (folder / "logs").mkdir(parents=True)
    for name, _ in NAMES:
        if name.lower() != "crawl.rules" or name == "crawl.rules":
            content = {".xml": "<a/>", ".rules": ""}.get(Path(name).suffix, "Proxy host = \n")
            (folder / name).write_text(content, encoding="utf-8")
    (folder / "gone").symlink_to(folder / "nowhere")
    made = imported(folder)
    assert {one.file for one in made.report.options} >= {path.name for path in folder.iterdir()}
    assert "logs: folder: no counterpart, because this folder is none that is known" in report(made)
    assert "crawler.xml: file: no counterpart, because none of its 0 properties is known" in report(made)
    assert "mc: start URLs: no counterpart, because the folder has no file with start URLs that can be used" in report(made)


def test_of_two_files_with_one_name_the_first_counts(tmp_path: Path) -> None:
    made = made_of(tmp_path, CRAWL__RULES="forbid domain a", crawl__rules="forbid domain b")
    assert "forbid domain a" in made.files["crawl.rules"]
    assert "crawl.rules: file: no counterpart, because CRAWL.RULES is there too, and is read" in report(made)


@pytest.mark.parametrize(("content", "line"), COOKIES, ids=[row[1][:60] for row in COOKIES])
def test_cookies_are_reported(content: str, line: str, tmp_path: Path) -> None:
    made = made_of(tmp_path, cookies__ini=content)
    assert line in report(made)
    assert "S3cret" not in report(made) + "".join(made.files.values())
    assert "CRAWLSPACE_SITES" not in settings_of(made)


def test_cookies_are_a_log_in_where_a_sign_is_known(tmp_path: Path) -> None:
    (tmp_path / "cookies.ini").write_text("[a.ibm.com]\nSID=S3cret\nX.Y=1\n[.b.com]\nSID=1\n[c.b.com]\nSID=1\n", encoding="utf-8")
    signs = {"a.ibm.com": "Log in", "*.b.com": "https://sso.b.com/", "c.b.com": "Log in"}
    made = imported(tmp_path, logged_out=signs)
    assert settings_of(made)["CRAWLSPACE_SITES"] == {
        "a.ibm.com": {"login": {"type": "cookies", "cookies": {"SID": "env:DEMO_A_IBM_COM_SID", "X.Y": "env:DEMO_A_IBM_COM_X_Y"}, "logged_out": {"text": "Log in"}}},
        "c.b.com": {"login": {"type": "cookies", "cookies": {"SID": "env:DEMO_C_B_COM_SID"}, "logged_out": {"text": "Log in"}}},
        "*.b.com": {"login": {"type": "cookies", "cookies": {"SID": "env:DEMO_B_COM_SID"}, "logged_out": {"redirect": "https://sso.b.com/"}}},
    }  # fmt: skip
    assert made.files["settings.py"].index('"*.b.com": {') > made.files["settings.py"].index(
        '"c.b.com": {'
    )  # the first match holds
    with pytest.raises(
        UsageError, match=r"--logged-out names 'd', of which there are no cookies; there are cookies of 'a.ibm.com'"
    ):
        imported(tmp_path, logged_out={"d": "Log in"})


@pytest.mark.parametrize(("content", "line", "sites"), LOGINS, ids=[row[0][:40] for row in LOGINS])
def test_log_ins(content: str, line: str, sites: dict[str, object], tmp_path: Path) -> None:
    made = made_of(tmp_path, httpauth__ini=content)
    assert line in report(made)
    assert "S3cret" not in report(made) + "".join(made.files.values())
    assert settings_of(made).get("CRAWLSPACE_SITES", {}) == {host: {"login": login} for host, login in sites.items()}


@pytest.mark.parametrize(("content", "line", "rows"), SOFT, ids=[row[0][:60] for row in SOFT])
def test_soft_error_pages(content: str, line: str, rows: list[list[object]], tmp_path: Path) -> None:
    made = made_of(tmp_path, softerrors__txt=content)
    assert line in report(made)
    assert settings_of(made).get("CRAWLSPACE_SOFT_ERRORS", []) == rows


def test_no_secret_of_the_corpus_gets_out() -> None:
    for folder in CORPUS.iterdir():
        made = imported(folder)
        assert not re.search("s3cret", report(made) + "".join(made.files.values()), re.IGNORECASE)


def test_a_password_in_a_comment_is_not_copied(tmp_path: Path) -> None:
    made = made_of(tmp_path, crawl__rules="# see http://anna:S3cret@www.ibm.com/\nforbid domain a\n")
    assert "# see http://…@www.ibm.com/\nforbid domain a\n" in made.files["crawl.rules"]


def test_the_samples_of_the_documentation_as_they_are() -> None:
    made = imported(CORPUS / "seeds")
    lines = [one.sentence for one in made.report.options if one.fate is Fate.NO_COUNTERPART]
    assert lines == [
        "no counterpart, because 'www.ibm.com' is no start URL: one begins with http:// or https://, as in http://www.ibm.com"
    ]
    starts = re.findall("^(?:# refused by the rules: )?(http.*)$", made.files["start_urls.txt"], re.MULTILINE)
    ipv6 = "http://[2001:db8:0:1::1]/"
    assert starts == ["http://w3.ibm.com/", "http://sales.ibm.com:9080/", ipv6, ipv6, "http://www.ibm.com/"]


def test_lines_of_rules_are_named(tmp_path: Path) -> None:
    made = made_of(tmp_path, crawl__rules=b"\xef\xbb\xbf# a\r\nforbid domain a  \r\n\r\n \r\n\tforbid domain b\r\n")
    assert made.files["crawl.rules"].partition("\n\n")[2] == (
        "# crawl.rules:1-2\n# a\nforbid domain a\n\n# crawl.rules:5\n\tforbid domain b\n"
    )


def test_any_rule_can_stand_in_a_comment_of_xml(tmp_path: Path) -> None:
    made = made_of(tmp_path, followindex__rules="forbid index prefix http://a/x---y?b=<c&d--*\n")
    assert "<!-- followindex.rules:1: forbid index prefix http://a/x- - -y?b=&lt;c&amp;d- -* -->" in made.files["rules.xml"]
    assert len(parse_rules_xml(made.files["rules.xml"].encode(), file="rules.xml").rules) == 1


def test_a_global_space_that_ibm_does_not_have_is_removed(tmp_path: Path) -> None:
    made = made_of(tmp_path, crawl__rules="forbid domain a")
    folder = tmp_path / "demo"
    write_files(folder, {**made.files, "global.rules": "allow domain a\n"})
    assert f"--- {folder}/global.rules (now)" in difference(folder, made.files, made.absent)
    (folder / "global.rules").write_text("", encoding="utf-8")
    assert difference(folder, made.files, made.absent) == f"{folder}/global.rules is removed\n"
    write_files(folder, made.files, made.absent)
    assert sorted(path.name for path in folder.iterdir()) == ["crawl.rules", "rules.xml", "settings.py", "start_urls.txt"]
    assert not difference(folder, made.files, made.absent)


# --- bad input ----------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, str | bytes], list[str]]] = [
    (
        {"crawl__rules": "alow domain a\nforbid domain http://b/\n", "global__rules": "forbid http://a/\n", "followindex__rules": "forbid prefix http://a/\n"},
        [
            "crawl.rules:1:1: expected 'allow' or 'forbid', not 'alow'",
            "crawl.rules:2:15: a domain target is a host name without a scheme",
            "global.rules:1:8: a prefix rule is not allowed in global.rules",
            "followindex.rules:1:8: expected follow or index after the action, not 'prefix'",
        ],
    ),
    ({"crawl__rules": "forbid domain a\n".encode("utf-16")}, ["crawl.rules:1:1: the file is in UTF-16; save it as UTF-8"]),
    (
        {"crawl__rules": b"# Gr\xf6\xdfe\nforbid domain a b\n", "seeds": b"http://a/\xf6\n", "softerrors__txt": b"*|\xf6|*|404"},
        [
            "crawl.rules:1:5: this is not UTF-8; save the file as UTF-8",
            "crawl.rules:2:17: unexpected 'b'",
            "seeds:1:10: this is not UTF-8",
            "softerrors.txt:1:3: this is not UTF-8",
        ],
    ),
    ({"crawler__xml": "<a><b></a>"}, ["crawler.xml:1:9: the file is not well-formed XML: mismatched tag"]),
    ({"crawler__xml": "<!DOCTYPE a [<!ENTITY b 'c'>]>\n<a/>"}, ["has no DOCTYPE, and so no entities of its own"]),
    ({"crawler__xml": "<a>" * 60 + "</a>" * 60}, ["more than 50 elements are inside each other here"]),
    (
        {"followindex__rules": "forbid\nforbid indx prefix http://a/\nallow index domain a\nallow follow prefix a\nforbid index prefix http://a/ b\n"},
        [
            "followindex.rules:1:7: expected follow or index, then prefix and a URL",
            "followindex.rules:2:8: expected follow or index after the action, not 'indx': did you mean 'index'?",
            "followindex.rules:4:21: a prefix target begins with http:// or https://",
            "followindex.rules:5:31: unexpected 'b'",
        ],
    ),
    (
        {"followindex__rules": "allow index address 10.0.0.1\nallow index domain http://a/\n"},
        ["followindex.rules:2:20: a domain target is a host name without a scheme"],
    ),
    (
        {"followindex__rules": "allow index address 10.0.0.1\n"},
        ["followindex.rules:1:21: a rule about follow or index has a prefix or a domain"],
    ),
    (
        {"followindex__rules": "forbid index prefix http://a/\n" * 10_001},
        ["followindex.rules:1:1: the file has 10,001 rules, and 10,000 is the most"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("contents", "sentences"), WRONG, ids=[row[1][0][:50] for row in WRONG])
def test_all_mistakes_of_all_files_are_shown(contents: dict[str, str | bytes], sentences: list[str], tmp_path: Path) -> None:
    with pytest.raises(RuleFileError) as raised:
        made_of(tmp_path, **contents)
    found = str(raised.value)
    assert [sentence for sentence in sentences if sentence not in found] == [], found
    assert len(raised.value.mistakes) == len(sentences)


def test_a_mistake_shows_the_line_as_written(tmp_path: Path) -> None:
    with pytest.raises(RuleFileError) as raised:
        made_of(tmp_path, followindex__rules="forbid index prefix http://a/x#y\n")
    assert raised.value.mistakes[0].text == "forbid index prefix http://a/x#y"


def test_a_large_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"crawler\.properties has 50\.0 MiB, and 20 MiB is the most that is read"):
        made_of(tmp_path, crawler__properties=b"a" * (50 * 1024 * 1024))


def test_a_large_file_of_rules_is_read(tmp_path: Path) -> None:
    made = made_of(tmp_path, crawl__rules="".join(f"forbid prefix http://a.ibm.com/{n:0200}/\n" for n in range(20_000)))
    assert "crawl.rules:1: rules: translated to 20,000 rules in crawl.rules" in report(made)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "crawl.rules").mkdir()
    (tmp_path / "global.rules").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"global\.rules cannot be read: No such file or directory"):
        imported(tmp_path)


FOLDERS = [
    ("nowhere", "there is no folder"),
    ("file", "is a file: name the folder that it is in"),
    ("empty", "has no file of IBM's Web crawler, such as crawl.rules: name its master_config folder"),
    ("master_config", "has folders of crawlers in it ('col1.WEB1', 'col2.WEB1'): import each of them"),
]


@pytest.mark.parametrize(("name", "sentence"), FOLDERS)
def test_a_folder_that_is_none_of_a_crawler(name: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    for crawler in ("col1.WEB1", "col2.WEB1"):
        (tmp_path / "master_config" / crawler).mkdir(parents=True)
        (tmp_path / "master_config" / crawler / "crawl.rules").touch()
    with pytest.raises(CrawlspaceError, match=re.escape(sentence)) as raised:
        list_folder(tmp_path / name)
    assert raised.value.exit_status == 2


def test_start_urls_of_a_file_with_another_name(tmp_path: Path) -> None:
    (tmp_path / "mc").mkdir()
    (tmp_path / "mc" / "begin.lst").write_text("http://a/\n", encoding="utf-8")
    (tmp_path / "other").write_text("http://b/\n", encoding="utf-8")
    for path in (tmp_path / "mc" / "begin.lst", tmp_path / "other"):
        [*_, file] = [file for file in list_folder(tmp_path / "mc", path) if file.part is FileKind.START_URLS]
        assert file.path == path
    with pytest.raises(UsageError, match="name the file with the start URLs"):
        list_folder(tmp_path / "mc", tmp_path / "nowhere")
