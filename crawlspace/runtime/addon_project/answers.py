"""What the commands of the add-on print."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from crawlspace.admin.explain import Question
from crawlspace.errors import UsageError, first_of_each_file
from crawlspace.printable import printable
from crawlspace.rules.lint.crawl_rules import bounded
from crawlspace.runtime.addon_project.review import SHARED, explain_url, review_project
from crawlspace.runtime.command import print_json, print_lines, printing, without_options
from crawlspace.runtime.explanation_text import decision_lines

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def lint(args: Sequence[str], settings: BaseSettings, *, as_json: bool) -> int:
    """Print the findings of a project; return the exit status."""

    def answer() -> int:
        if without_options(args):
            raise UsageError(
                "a project with the add-on has no collections: scrapy lint, without a name, checks the rules of all spiders"
            )
        findings = review_project(settings)
        if as_json:
            print_json([finding.as_json() for finding in bounded(findings)])
        else:
            print_lines(list(first_of_each_file(findings)) or ["no findings"])
        return 1 if findings else 0

    return printing(answer)


def explain(args: Sequence[str], settings: BaseSettings, *, as_json: bool, options: Mapping[str, str | None]) -> int:
    """Print the decision for a URL; return the exit status."""

    def answer() -> int:
        named = without_options(args)
        if len(named) not in (1, 2):
            raise UsageError("name a URL, or a spider and a URL, as in: scrapy explain products http://www.example.com/page.html")
        question = Question(named[-1], address=options["address"], mime=options["mime"], page=options["page"])
        explanation, folder = explain_url(question, settings, name=named[0] if len(named) > 1 else SHARED)
        if as_json:
            print_json(explanation.as_json())
        else:
            print_lines([*decision_lines(explanation), f"{'rules':<12} {printable(os.path.relpath(folder))}"])
        return 0

    return printing(answer)
