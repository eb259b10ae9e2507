"""`scrapy lint` and `scrapy explain` in a project that has the add-on and no collections.

The package declares them as entry points, so every `scrapy` command of any project in its environment imports this module: it must be
cheap, and whatever the commands need is imported when they run. In a project with collections, those of `crawlspace.commands` take
their place, because COMMANDS_MODULE comes after entry points.
"""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand


class AddonCommand(ScrapyCommand):
    """A command that needs no network and no project of a certain kind: it says itself what is missing."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - as Scrapy's commands do

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print the answer for a program")


class LintRules(AddonCommand):
    """Report errors and probable mistakes in the rules and settings of the add-on."""

    def short_desc(self) -> str:
        return "Find errors and probable mistakes in the rules of crawlspace's add-on"

    def long_desc(self) -> str:
        return (
            "Read the rules that hold for each spider of the project, and the settings of crawlspace's add-on, and list what is wrong (error: the "
            "spider can't be crawled so) and what is suspicious (warning). Changes nothing and makes no network requests. "
            "Exit status: 0 nothing found, 1 a finding of either level, 2 wrong use."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from crawlspace.runtime.components.addon_review import lint  # noqa: PLC0415 - see above

        assert self.settings is not None
        self.exitcode = lint(args, self.settings, as_json=opts.json)


class ExplainUrl(AddonCommand):
    """Print the decision for a URL, with every check and the deciding rule."""

    def syntax(self) -> str:
        return "[options] [<spider>] <url>"

    def short_desc(self) -> str:
        return "Explain why crawlspace's add-on lets a URL through or not"

    def long_desc(self) -> str:
        return (
            "Explain what the rules of crawlspace's add-on decide about a URL: each check in order with its result, and the rule that decided with its "
            "line. Without a spider, the rules for all spiders apply, or those of the only one. Makes no network requests. "
            "Exit status: 0 answered, whatever the answer; 1 the rules or settings have a fault; 2 wrong use."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--address", metavar="IP", help="also check a connection to this address of the host")
        parser.add_argument("--mime", metavar="TYPE", help="also check this Content-Type of the document, as in application/pdf")
        parser.add_argument("--from", dest="page", metavar="URL", help="the page with the link, for a relative URL")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from crawlspace.runtime.components.addon_review import explain  # noqa: PLC0415 - see above

        assert self.settings is not None
        options = {"address": opts.address, "mime": opts.mime, "page": opts.page}
        self.exitcode = explain(args, self.settings, as_json=opts.json, options=options)
