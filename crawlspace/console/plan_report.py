"""A plan as one HTML file, for those who approve a change of rules: it needs no other file and no console."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from crawlspace.admin.rule_files import difference
from crawlspace.clock import local_time
from crawlspace.console.templates import STATIC, environment
from crawlspace.crawl.rule_changes.rules_in_force import RulesInForce
from crawlspace.runtime.planning.plan_process import PlannedChanges
from crawlspace.runtime.planning.rule_plan import CONTENT_CHANGED, FIELDS_CHANGED, KINDS
from crawlspace.text import escaped


def plan_report(name: str, found: PlannedChanges, *, before: RulesInForce | None, present: RulesInForce, now: float) -> str:
    """Return the file. `before` are the rules of the last start, where they were kept."""
    return (
        environment()
        .get_template("plan_report.html")
        .render(
            name=name,
            made_at=local_time(now),
            css=Markup((STATIC / "console.css").read_text(encoding="utf-8")),  # noqa: S704 - a file of ours
            differences={} if before is None else _differences(before, present),
            known_since=before is not None,
            home="",
            found=found,
            kinds=[(kind, KINDS[kind]) for kind in KINDS if kind in found.totals],
            rules=dict.fromkeys(found.by_rule, ""),
            fields_changed=FIELDS_CHANGED,
            content_changed=CONTENT_CHANGED,
        )
    )


def _differences(before: RulesInForce, present: RulesInForce) -> dict[str, Sequence[str]]:
    """Return the lines of a unified diff by file; none for a file whose text is not kept."""
    found: dict[str, Sequence[str]] = {}
    for file in sorted(before.digests.keys() | present.digests.keys()):
        if before.digests.get(file) == present.digests.get(file):
            continue
        old, new = before.texts.get(file), present.texts.get(file)
        is_known = (old is not None or file not in before.digests) and (new is not None or file not in present.digests)
        texts = [escaped((data or b"").decode("utf-8", "replace"), keep_lines=True) for data in (old, new)]
        found[file] = difference(*texts, old_name=f"{file} at the last start", new_name=f"{file} now") if is_known else []
    return found
