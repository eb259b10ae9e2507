"""The rule files of a collection: an editor with lint and trials of URLs, plans of what they would do, and old versions."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from crawlspace.admin.rule_files import (
    CRAWL_RULES,
    LARGEST,
    NAMES,
    START_URLS,
    EditedRules,
    RuleFile,
    RuleText,
    difference,
    edited_rules,
    errors_of,
    lint_edited,
    load_edited,
    read_rule_file,
    rule_files,
    text_of,
    unified,
)
from crawlspace.admin.rule_history import RuleFileChanged, read_version, save_rule_file, versions
from crawlspace.admin.rule_trial import MOST_TRIED, TriedUrl, try_urls
from crawlspace.config.collection import load_collection
from crawlspace.config.files import GLOBAL_RULES, RULES_XML, is_there
from crawlspace.console.plans import WaitingPlan
from crawlspace.console.routes import Answer, Asked, Done, Routes, View, action, page, question
from crawlspace.console.templates import link, path_part
from crawlspace.content.extraction_rules import EXTRACT_TOML
from crawlspace.errors import ConfigError, StoreError, UsageError
from crawlspace.lint.finding import Finding, bounded
from crawlspace.rules.rule_tests import RULE_TESTS
from crawlspace.runtime.components.loader import default_values
from crawlspace.runtime.planning.plan_process import PlanStart
from crawlspace.runtime.planning.rule_plan import CONTENT_CHANGED, FIELDS_CHANGED, KINDS
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.text import counted, excerpt, printable, quoted

_LONGEST_RULE = 5_000
_MEANINGS = {
    CRAWL_RULES: "Which URLs belong to the collection: by host, by prefix and by address. In each of these three lists the first rule that applies decides.",
    RULES_XML: "What happens with single URLs: whether they are accepted, indexed and followed, their priority, and fields of their documents.",
    START_URLS: "Where the crawl begins: one URL a line.",
    EXTRACT_TOML: "Fields, texts and parts that are taken from pages.",
    RULE_TESTS: "URLs, and what the rules must decide about each: no crawl begins while one of these tests fails.",
    GLOBAL_RULES: "The hosts that the collections of the project have between them: a document that leaves this collection stays in the index"
    " if another one may have it.",
}


# --- the editor ----------------------------------------------------------------------------------------------------


class _Opened(NamedTuple):
    """The files of a collection, and the one that is edited, as it is on disk."""

    paths: CollectionPaths
    files: Mapping[str, RuleFile]
    file: RuleFile
    disk: RuleText


def _open(asked: Asked, given: Mapping[str, str]) -> _Opened:
    """Open the file that is named. Raises UsageError for another one, and ConfigError."""
    paths = asked.console.paths(asked.name)
    files = rule_files(paths.folder, paths.settings)
    name = given.get("file") or next((name for name in files if is_there(files[name].path)), CRAWL_RULES)
    if name not in files:
        raise UsageError(f"{quoted(name)} is no file of rules of {asked.name}: there may be {', '.join(files)}")
    return _Opened(paths, files, files[name], read_rule_file(files[name]))


def show(asked: Asked) -> View:
    """Show a file in the editor; `line` is marked, `rule` is added at the end, and `version` is an old text."""
    opened = _open(asked, asked.query)
    text, notes = opened.disk.text, []
    if asked.query.get("version"):
        version, data = read_version(opened.file, asked.query["version"])
        text = "" if data is None else text_of(data, file=opened.file.shown).text
        notes.append(f"This is the text that was replaced by {printable(version.user)}. It is not saved yet.")
    rule = " ".join(asked.query.get("rule", "")[:_LONGEST_RULE].split())
    line = asked.number("line", default=0)
    if rule and not opened.disk.fault:
        text = f"{text}\n{rule}\n" if text and not text.endswith("\n") else f"{text}{rule}\n"
        line = text.count("\n")
        notes.append("The last line is new. It is not saved yet: try it, and see what it would do.")
    return _editor(asked, opened, text, line=line, notes=notes)


@dataclass(frozen=True, slots=True)
class _FindingRow:
    """A finding with the line that it is about. `path` leads to it, `is_here` says that it is in the edited text."""

    finding: Finding
    code: str
    caret: str
    path: str
    is_here: bool


def _rows(name: str, opened: _Opened, text: str, findings: Sequence[Finding]) -> Iterator[_FindingRow]:
    by_shown = {file.shown: file for file in opened.files.values()}
    lines = text.split("\n")
    for one in bounded(findings):
        file = by_shown.get(one.file)
        is_here = file is opened.file
        code, caret = "", 0
        if is_here and 0 < one.line <= len(lines):
            code, caret = excerpt(lines[one.line - 1], max(one.column - 1, 0))
        path = link(f"/c/{path_part(name)}/rules", file=file.name, line=one.line or None) if file is not None else ""
        yield _FindingRow(one, code, " " * caret + "^" if code else "", path, is_here)


def _findings(opened: _Opened, text: str) -> list[Finding]:
    """Return what lint finds in the collection with an edited text. Raises ConfigError."""
    if opened.disk.fault or text == opened.disk.text:
        unedited = EditedRules(opened.paths.folder, opened.paths.settings, opened.paths.folder)
        return lint_edited(unedited, default_values())
    return _findings_of(opened, opened.disk.encoded(text))


def _findings_of(opened: _Opened, data: bytes | None) -> list[Finding]:
    fault = "" if data is None else text_of(data, file=opened.file.shown).fault
    if fault:
        return [Finding(opened.file.shown, 1, 1, "error", "syntax", fault)]
    with edited_rules(opened.paths.folder, opened.paths.settings, opened.file, data) as edited:
        return lint_edited(edited, default_values())


@dataclass(frozen=True, slots=True)
class _Trial:
    """URLs that were tried, or why that was not possible. `fault` is why there are no decisions of the rules on disk."""

    tried: Sequence[TriedUrl] = ()
    error: str = ""
    fault: str = ""
    left_out: int = 0

    @property
    def changes(self) -> int:
        return sum(one.changes for one in self.tried)


def _editor(
    asked: Asked,
    opened: _Opened,
    text: str,
    *,
    line: int = 0,
    notes: Sequence[str] = (),
    error: str = "",
    differs: Sequence[str] = (),
    findings: Sequence[Finding] | None = None,
    trial: _Trial | None = None,
    status: int = HTTPStatus.OK,
) -> View:
    file, disk = opened.file, opened.disk
    found = _findings(opened, text) if findings is None else findings
    return View(
        "rules.html",
        {
            "files": [(one, is_there(one.path)) for one in opened.files.values()],
            "file": file,
            "meaning": _MEANINGS[file.name],
            "text": text,
            "disk": disk,
            "is_edited": text != disk.text,
            "line": line,
            "notes": notes,
            "error": error,
            "differs": differs,
            "rows": list(_rows(asked.name, opened, text, found)),
            "versions": versions(file),
            "urls": asked.form.get("urls", asked.query.get("urls", "")),
            "trial": trial,
            "most_tried": MOST_TRIED,
            "may_be_removed": bool(disk.digest) and file.name in (CRAWL_RULES, RULES_XML, EXTRACT_TOML, RULE_TESTS),
            "is_crawled": _is_crawled(opened.paths),
        },
        status,
    )


def _is_crawled(paths: CollectionPaths) -> bool:
    try:
        with paths.store.reading() as opened:
            return opened is not None and bool(opened.crawlers())
    except StoreError:  # the files can be edited all the same
        return False


def _user(asked: Asked) -> str:
    return "" if asked.user is None else asked.user.name


def _sent_text(asked: Asked) -> str:
    """Return the text of the form. Raises UsageError."""
    text = unified(asked.form.get("text", ""))
    if len(text.encode("utf-8", "replace")) > LARGEST:
        raise UsageError(f"the text has more than {LARGEST:,} bytes: edit the file with an editor on the machine of the console")
    return text


def lint(asked: Asked) -> View:
    """Show what lint finds in an edited text."""
    opened, text = _open(asked, asked.form), _sent_text(asked)
    return View("rule_findings.html", {"rows": list(_rows(asked.name, opened, text, _findings(opened, text)))})


def check(asked: Asked) -> View:
    """Show the editor with an edited text."""
    return _editor(asked, _open(asked, asked.form), _sent_text(asked))


def test(asked: Asked) -> View:
    """Show what is decided about URLs with the rules on disk and with the edited ones."""
    opened, text = _open(asked, asked.form), _sent_text(asked)
    return _editor(asked, opened, text, trial=_trial(asked, opened, text))


def _trial(asked: Asked, opened: _Opened, text: str) -> _Trial:
    urls = [line.strip() for line in asked.form.get("urls", "").splitlines() if line.strip()]
    if not urls:
        return _Trial(error="Write URLs to try, one a line.")
    paths, fault, before = opened.paths, "", None
    try:
        before = load_collection(paths.name, paths.settings)
    except ConfigError:
        fault = "The rules on disk have errors, so that nothing can be said about them."
    try:
        with edited_rules(paths.folder, paths.settings, opened.file, opened.disk.encoded(text)) as edited:
            after = load_edited(edited)
    except ConfigError as error:
        return _Trial(error=f"The edited rules have errors, so that they decide nothing: {error}")
    with paths.store.reading() as store:
        tried = try_urls(urls, before, after, store=None if store is None else store.store, clock=asked.console.clock)
    return _Trial(tried, fault=fault, left_out=max(0, len(urls) - MOST_TRIED))


# --- saving --------------------------------------------------------------------------------------------------------


def save(asked: Asked) -> Answer:
    """Replace the file on disk by the edited text."""
    opened, text = _open(asked, asked.form), _sent_text(asked)
    if opened.disk.fault:
        raise UsageError(opened.disk.fault)
    return _save(asked, opened, opened.disk.encoded(text), text)


def remove(asked: Asked) -> Answer:
    """Remove a file."""
    opened = _open(asked, asked.form)
    return _save(asked, opened, None, opened.disk.text)


def restore(asked: Asked) -> Answer:
    """Put an old version of a file in its place again."""
    opened = _open(asked, asked.form)
    _, data = read_version(opened.file, asked.form.get("version", ""))
    return _save(asked, opened, data, "" if data is None else text_of(data, file=opened.file.shown).text)


def _save(asked: Asked, opened: _Opened, data: bytes | None, text: str) -> Answer:
    file, disk = opened.file, opened.disk
    here = link(f"/c/{path_part(asked.name)}/rules", file=file.name)
    seen = asked.form.get("hash", "")
    if seen == disk.digest and (text == disk.text if data is not None else not disk.digest):
        return Done(f"{file.name} is unchanged: there was nothing to save.", here)
    if seen != disk.digest:
        return _changed_meanwhile(asked, opened, text)
    found = _findings_of(opened, data)
    errors = errors_of(found, _findings(opened, disk.text), file)
    if errors:
        what = "saved" if data is not None else "removed"
        return _editor(
            asked,
            opened,
            text,
            error=f"{file.name} was not {what}: with it, the collection would have {counted(len(errors), 'error')}.",
            findings=found,
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
        )
    try:
        save_rule_file(file, data, seen=seen, user=_user(asked), clock=asked.console.clock)
    except RuleFileChanged:
        return _changed_meanwhile(asked, _open(asked, asked.form), text)
    what = f"{file.name} is saved" if data is not None else f"{file.name} is removed"
    when = (
        "the crawl that runs goes on with the old rules, and its next start applies these"
        if _is_crawled(opened.paths)
        else "the next start applies it"
    )
    changed = difference(disk.text, text if data is not None else "", old_name="", new_name="")[2:]
    details = {
        "lines added": sum(line.startswith("+") for line in changed),
        "lines removed": sum(line.startswith("-") for line in changed),
    }
    return Done(f"{what}: {when}.", here, details)


def _changed_meanwhile(asked: Asked, opened: _Opened, text: str) -> View:
    file = opened.file
    return _editor(
        asked,
        opened,
        text,
        error=f"{file.name} has been changed on disk since it was opened here, so nothing was saved. Below is what saving your text would change"
        " now: look at it, and save again to replace what is on disk.",
        differs=difference(opened.disk.text, text, old_name=f"{file.name} on disk", new_name="your text"),
        status=HTTPStatus.CONFLICT,
    )


def show_version(asked: Asked) -> View:
    """Show how an old version of a file differs from the present one."""
    opened = _open(asked, asked.query)
    version, data = read_version(opened.file, asked.query.get("version", ""))
    old = "" if data is None else text_of(data, file=opened.file.shown).text
    names = {"old_name": f"{opened.file.name} now", "new_name": "old version"}
    shown = {"file": opened.file, "disk": opened.disk, "version": version, "differs": difference(opened.disk.text, old, **names)}
    return View("rule_version.html", shown)


# --- plans ---------------------------------------------------------------------------------------------------------


def plan(asked: Asked) -> View:
    """Show a plan with its progress; begin that of the rules on disk where none is named."""
    id = asked.query.get("id")
    if id is None:
        start = PlanStart(asked.console.paths(asked.name).name, asked.console.collections.command_line())
        return _plan(asked, asked.console.plans.begin(_user(asked), start))
    return _plan(asked, asked.console.plans.get(id, collection=asked.name))


def begin_plan(asked: Asked) -> View:
    """Begin the plan of an edited text."""
    opened, text = _open(asked, asked.form), _sent_text(asked)
    if text == opened.disk.text:
        return plan(asked)
    data = base64.b64encode(opened.disk.encoded(text)).decode()
    start = PlanStart(asked.name, asked.console.collections.command_line(), opened.file.name, data)
    return _plan(asked, asked.console.plans.begin(_user(asked), start, text=text, seen=asked.form.get("hash", "")))


def _plan(asked: Asked, waiting: WaitingPlan) -> View:
    found = waiting.found
    kinds = [] if found is None else [kind for kind in KINDS if kind in found.totals]
    shown = {
        "plan": waiting,
        "found": found,
        "kinds": [(kind, KINDS[kind]) for kind in kinds],
        "rules": {} if found is None else {rule: _place(asked.name, rule, but=waiting.file) for rule in found.by_rule},
        "fields_changed": FIELDS_CHANGED,
        "content_changed": CONTENT_CHANGED,
    }
    return View("rule_plan.html", shown)


def _place(name: str, rule: str, *, but: str) -> str:
    """Return the path of a rule in the editor; empty where it is none, or is in the edited text."""
    file, _, line = rule.rpartition(":")
    return link(f"/c/{path_part(name)}/rules", file=file, line=line) if file in NAMES and file != but else ""


ROUTES: Routes = (
    page("/c/{name}/rules", show),
    question("/c/{name}/rules/lint", lint),
    question("/c/{name}/rules/check", check),
    question("/c/{name}/rules/test", test),
    action("/c/{name}/rules/save", save),
    action("/c/{name}/rules/remove", remove),
    action("/c/{name}/rules/restore", restore),
    page("/c/{name}/rules/version", show_version),
    page("/c/{name}/rules/plan", plan),
    question("/c/{name}/rules/plan", begin_plan),
)
