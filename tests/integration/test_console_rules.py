"""The pages of the rule files: what they show, what they refuse to save, and what is kept."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from crawlspace.console.users import Role, Users
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, Got, served
from tests.integration.stored import collection
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Site, page, serve, status

PASSWORD = "correct horse battery"
HOME = "http://www.example.com/"
RULES = "allow domain www.example.com\nforbid domain *\n"
SCRIPT = "<script>alert(1)</script>{{1234567*7654321}}"
PAGE = "/c/demo/rules"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project({**collection(HOME, rules=RULES), "other/start_urls.txt": HOME})


def rules_of(demo: Project) -> Path:
    return demo.collections / "demo" / "crawl.rules"


def text_in(got: Got) -> str:
    """The text in the editor, as a browser reads it."""
    found = re.search(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', got.text, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def sent(browser: Browser, action: str, text: str, *, file: str = "crawl.rules", seen: Got | None = None, **more: str) -> Got:
    """Send the form of the editor, as it was seen on a page."""
    page_of = seen or browser.get(f"{PAGE}?file={file}")
    hash_of = re.search(r'name="hash" value="([^"]*)"', page_of.text)
    assert hash_of is not None
    return browser.post(f"{PAGE}/{action}", {"file": file, "hash": hash_of[1], "text": text.replace("\n", "\r\n"), **more})


def planned(browser: Browser, first: Got) -> str:
    """The words of a plan when it is done."""
    id = re.search(r"plan\?id=([\w-]+)", first.text)
    assert id is not None, first.words
    assert browser.console is not None
    assert browser.console.plans.get(id[1], collection="demo").ended.wait(LONGEST_WAIT_S)
    return browser.get(f"{PAGE}/plan?id={id[1]}").words


# --- what is shown ------------------------------------------------------------------------------------------------


def test_the_files(demo: Project) -> None:
    with served(demo) as browser:
        shown = browser.get(PAGE)
        assert text_in(shown) == RULES
        assert "crawl.rules rules.xml none start_urls.txt extract.toml none" in shown.words
        assert "global.rules" not in shown.words, "the collection has none"
        assert "Lint finds nothing." in shown.words
        assert text_in(browser.get(f"{PAGE}?file=start_urls.txt")) == f"{HOME}\n"
        assert (text_in(browser.get(f"{PAGE}?file=rules.xml")), rules_of(demo).with_name("rules.xml").exists()) == ("", False)
        assert "Line 2: forbid domain *" in browser.get(f"{PAGE}?line=2").words
        demo.write({"global.rules": "allow domain *.example.com\n"})
        assert "Other collections use this file, too" in browser.get(f"{PAGE}?file=global.rules").words


@pytest.mark.parametrize("name", ["settings.py", "../other/start_urls.txt", "/etc/passwd", "crawl.rules/../settings.py", SCRIPT])
def test_other_files_are_not_shown(demo: Project, name: str) -> None:
    with served(demo) as browser:
        for answer in (browser.post(f"{PAGE}/check", {"file": name}), sent(browser, "save", "x = 1", file="crawl.rules")):
            assert SCRIPT not in answer.text
        answer = browser.post(f"{PAGE}/save", {"file": name, "hash": "", "text": "x = 1"})
        assert (answer.status, "is no file of rules" in answer.words) == (400, True)


def test_a_rule_is_offered(demo: Project) -> None:
    with served(demo) as browser:
        shown = browser.get(f"{PAGE}?rule=forbid%20prefix%20{HOME}a%0Aallow%20domain%20x")
        assert text_in(shown) == f"{RULES}forbid prefix {HOME}a allow domain x\n", "one line at the end"
        assert "It is not saved yet" in shown.words
        assert rules_of(demo).read_text() == RULES


@pytest.mark.parametrize("text", [SCRIPT, "</textarea><b>bold</b>", "\n\nforbid", "&lt;", "}</style>"])
def test_texts_are_escaped(demo: Project, text: str) -> None:
    demo.write({"demo/crawl.rules": f"{RULES}# {text}\n"})
    with served(demo) as browser:
        for answer in (browser.get(PAGE), sent(browser, "check", text), sent(browser, "test", RULES, urls=text)):
            assert "<script>alert" not in answer.text
            assert "<b>bold" not in answer.text
            assert str(1234567 * 7654321) not in answer.words
        assert text_in(browser.get(PAGE)) == f"{RULES}# {text}\n"
        assert text_in(sent(browser, "check", text)) == text


def test_lint_as_one_types(demo: Project) -> None:
    with served(demo) as browser:
        part = sent(browser, "lint", "allow domian www.example.com\n")
        assert "crawl.rules:1:7" in part.words
        assert "did you mean 'domain'?" in part.words
        assert "<html" not in part.text
        assert "the start URL http://www.example.com/ is refused" in sent(browser, "lint", "forbid domain *\n").words
        xml = '<Rules><Rule><Path val="/a"/><Prioriti/></Rule></Rules>'
        assert "rules.xml:1:" in sent(browser, "lint", xml, file="rules.xml").words
        wrong = sent(browser, "lint", "no url\n", file="start_urls.txt").words
        assert "start_urls.txt:1:1" in wrong
        none = sent(browser, "lint", "", file="start_urls.txt").words
        assert f"write one a line into {demo.collections}/demo/start_urls.txt" in none, "the file itself, not a temporary one"


def test_files_that_cannot_be_edited(demo: Project) -> None:
    cases = {
        "crawl.rules": (b"# caf\xe9\n", "is not UTF-8"),
        "rules.xml": (b'<?xml version="1.0" encoding="ISO-8859-1"?><Rules/>', "is declared as 'ISO-8859-1'"),
        "start_urls.txt": (f"{HOME}\n".encode() * 60_000, "has more than 1,000,000 bytes"),
    }
    with served(demo) as browser:
        for name, (data, sentence) in cases.items():
            (demo.collections / "demo" / name).write_bytes(data)
            shown = browser.get(f"{PAGE}?file={name}")
            assert (sentence in shown.words, "<textarea" in shown.text) == (True, False)
            answer = browser.post(f"{PAGE}/save", {"file": name, "hash": "", "text": "x"})
            assert (answer.status, sentence in answer.words) == (400, True)
            assert (demo.collections / "demo" / name).read_bytes() == data


# --- trials -------------------------------------------------------------------------------------------------------


def test_urls_are_tried(demo: Project) -> None:
    edited = f"forbid prefix {HOME}private/\n{RULES}"
    urls = f"{HOME}a\n{HOME}private/x\nhttp://other.example/\nno url\n"
    with served(demo) as browser:
        words = sent(browser, "test", edited, urls=urls).words.replace("/ ", "/")
        assert "1 URL is decided differently , of 4." in words
        assert (
            f"{HOME}private/x admitted crawl.rules:1 allow domain www.example.com refused a prefix rule forbids the URL" in words
        )
        assert "leaves" in words
        tried = sent(browser, "test", "allow domian\n", urls=urls).words
        assert "The edited rules have errors, so that they decide nothing" in tried
        assert "Write URLs to try" in sent(browser, "test", edited).words
        many = "".join(f"{HOME}{number}\n" for number in range(203))
        assert "3 URLs were left out" in sent(browser, "test", edited, urls=many).words
        rules_of(demo).write_text("allow domian\n")
        assert "The rules on disk have errors" in sent(browser, "test", edited, urls=urls).words


# --- plans --------------------------------------------------------------------------------------------------------


def test_plans(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/a", "/b"]), "/a": page("A"), "/b": page("B"), "/robots.txt": status(404)})
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        with served(demo) as browser:
            assert "demo knows no URL yet" in planned(browser, browser.get(f"{PAGE}/plan"))
            demo.crawl("demo").succeeded()
            assert "The rules are those of the last start" in planned(browser, browser.get(f"{PAGE}/plan"))
            edited = f"forbid prefix {server.url('/a')}\n"
            words = planned(browser, sent(browser, "plan", edited))
            assert "Of 3 known URLs : 1 leave the crawl space (760) 1 leave the index" in words
            assert f"crawl.rules:1 forbid prefix {server.url('/a')} 1 1" in words
            assert "Back to the edited text" in words
            assert rules_of(demo).read_text() == ""
            nothing = planned(browser, sent(browser, "plan", "forbid domain *\n"))
            assert "These rules refuse all start URLs, so that a crawl would not start" in nothing
            wrong = planned(browser, sent(browser, "plan", "forbid domian *\n"))
            assert "crawl.rules:1:8" in wrong
            demo.write({"demo/settings.py": "CRAWLSPACE_MAX_DELETIONS = 0\n"})
            assert "The deletions would be held." in planned(browser, sent(browser, "plan", edited))
            assert browser.get(f"{PAGE}/plan?id=guessed").status == 400
            assert not list((demo.data / "demo").glob("rule-history"))


# --- saving -------------------------------------------------------------------------------------------------------


def test_a_file_is_saved_and_restored(demo: Project) -> None:
    rules_of(demo).chmod(0o640)
    edited = f"forbid prefix {HOME}private/\n{RULES}"
    with served(demo) as browser:
        saved = sent(browser, "save", edited)
        assert "crawl.rules is saved: the next start applies it." in saved.words
        assert (rules_of(demo).read_text(), text_in(saved)) == (edited, edited)
        assert rules_of(demo).stat().st_mode & 0o777 == 0o640
        assert "there was nothing to save" in sent(browser, "save", edited).words
        version = re.search(r'href="([^"]*/version\?[^"]*)"', saved.text)
        assert version is not None
        shown = browser.get(html.unescape(version[1]))
        assert f"-forbid prefix {HOME}private/" in shown.words
        assert "local user replaced it" in shown.words
        fields = dict(re.findall(r'name="(file|version|hash)" value="([^"]*)"', shown.text))
        assert "crawl.rules is saved" in browser.post(f"{PAGE}/restore", fields).words
        assert rules_of(demo).read_text() == RULES
        assert "lines added: 1" in browser.get("/audit-log").words
        assert sorted(file.name for file in rules_of(demo).parent.iterdir()) == ["crawl.rules", "settings.py", "start_urls.txt"]


def test_what_has_errors_is_not_saved(demo: Project) -> None:
    with served(demo) as browser:
        cases = [
            ("crawl.rules", "allow domian www.example.com\n", "would have 1 error"),
            ("crawl.rules", "forbid domain *\n", "would have 1 error"),
            ("rules.xml", "<Rules>", "would have 1 error"),
            ("start_urls.txt", "", "would have 1 error"),
            ("extract.toml", "[[field]\n", "would have 1 error"),
            ("rules.xml", '<?xml version="1.0" encoding="latin-1"?><Rules/>', "would have 1 error"),
        ]
        before = {file.name: file.read_bytes() for file in rules_of(demo).parent.iterdir()}
        for name, text, sentence in cases:
            answer = sent(browser, "save", text, file=name)
            assert (answer.status, sentence in answer.words) == (422, True), (name, text, answer.words)
            assert text_in(answer) == text, "what was written is not lost"
        assert {file.name: file.read_bytes() for file in rules_of(demo).parent.iterdir()} == before


def test_an_error_elsewhere_keeps_no_file_from_being_saved(demo: Project) -> None:
    demo.write({"demo/rules.xml": "<Rules>", "demo/settings.py": "CRAWLSPACE_MAX_DELETIONS = -1\n"})
    with served(demo) as browser:
        assert "crawl.rules is saved" in sent(browser, "save", f"{RULES}# more\n").words


def test_nothing_is_overwritten_unseen(demo: Project) -> None:
    with served(demo) as browser:
        seen = browser.get(PAGE)
        rules_of(demo).write_text(f"{RULES}# by an editor\n")
        answer = sent(browser, "save", f"{RULES}# by the console\n", seen=seen)
        assert (answer.status, "has been changed on disk since it was opened here" in answer.words) == (409, True)
        assert "-# by an editor +# by the console" in answer.words
        assert rules_of(demo).read_text() == f"{RULES}# by an editor\n"
        assert "crawl.rules is saved" in sent(browser, "save", text_in(answer), seen=answer).words, "after it was seen"
        kept = list((demo.data / "demo" / "rule-history").glob("*.crawl.rules"))
        assert [file.read_text() for file in kept] == [f"{RULES}# by an editor\n"]
        missing = browser.get(f"{PAGE}?file=rules.xml")
        demo.write({"demo/rules.xml": "<Rules/>"})
        assert sent(browser, "save", "<Rules></Rules>", file="rules.xml", seen=missing).status == 409


def test_a_file_is_removed(demo: Project) -> None:
    demo.write({"demo/rules.xml": "<Rules/>"})
    with served(demo) as browser:
        assert "rules.xml is removed" in sent(browser, "remove", "", file="rules.xml").words
        assert not rules_of(demo).with_name("rules.xml").exists()
        assert sent(browser, "remove", "", file="start_urls.txt").status == 422, "the collection would have no start URL"


def test_the_form_of_a_file_stays(demo: Project) -> None:
    rules_of(demo).write_bytes(b"\xef\xbb\xbfallow domain www.example.com\r\nforbid domain *\r\n")
    elsewhere = demo.folder / "kept.txt"
    elsewhere.write_text(f"{HOME}\n")
    starts = demo.collections / "demo" / "start_urls.txt"
    starts.unlink()
    starts.symlink_to(elsewhere)
    with served(demo) as browser:
        assert text_in(browser.get(PAGE)) == RULES
        sent(browser, "save", f"{RULES}# more\n")
        sent(browser, "save", f"{HOME}\n{HOME}a\n", file="start_urls.txt")
    assert rules_of(demo).read_bytes() == b"\xef\xbb\xbfallow domain www.example.com\r\nforbid domain *\r\n# more\r\n"
    assert (starts.is_symlink(), elsewhere.read_text()) == (True, f"{HOME}\n{HOME}a\n")


def test_the_global_rules_of_the_project_are_saved(demo: Project) -> None:
    demo.write({"global.rules": "allow domain *.example.com\n"})
    with served(demo) as browser:
        assert sent(browser, "save", "allow domian x\n", file="global.rules").status == 422
        assert "global.rules is saved" in sent(browser, "save", "allow domain www.example.com\n", file="global.rules").words
        assert (demo.collections / "global.rules").read_text() == "allow domain www.example.com\n"
        assert "Replaced by" in browser.get("/c/other/rules?file=global.rules").words, "other collections show its history, too"


def test_what_cannot_be_kept_is_not_replaced(demo: Project) -> None:
    (demo.data / "demo").mkdir()
    (demo.data / "demo" / "rule-history").write_text("no folder")
    with served(demo) as browser:
        answer = sent(browser, "save", f"{RULES}# more\n")
        assert (answer.status, "nothing was saved" in answer.words) == (503, True)
        assert rules_of(demo).read_text() == RULES


def test_viewers_try_and_operators_save(demo: Project) -> None:
    users = Users(demo.data / "console-users")
    users.set_password("anna", PASSWORD, Role.VIEWER)
    with served(demo) as browser:
        browser.log_in("anna", PASSWORD)
        shown = browser.get(PAGE)
        assert ("Save" in shown.words.split(), "Saving them needs the role operator" in shown.words) == (False, True)
        for action in ("lint", "check", "test", "plan"):
            assert sent(browser, action, f"{RULES}# more\n", urls=HOME).status == 200
        for action in ("save", "remove", "restore"):
            assert sent(browser, action, f"{RULES}# more\n").status == 403
        assert browser.post(f"{PAGE}/lint", {"file": "crawl.rules", "text": ""}, csrf="").status == 403
        assert rules_of(demo).read_text() == RULES
        log = demo.data / "console-audit.jsonl"
        assert {"lint", "check", "test", "plan"}.isdisjoint(re.findall(r'"action": "(\w+)"', log.read_text()))
