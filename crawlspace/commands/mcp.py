"""`scrapy mcp`: let an assistant search and read collections, by the Model Context Protocol on standard input and output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from crawlspace.clock import SystemClock
from crawlspace.console.assistants.extra import check_extra_of
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, EscapingOutput
from crawlspace.runtime.session.project import ProjectCollections


class Command(CollectionCommand):
    usage = "<collection> [<collection> ...]"
    summary = "Let an assistant search and read collections (MCP)"
    explanation = (
        "Serve the collections named to an assistant that starts this command, by the Model Context Protocol on standard input and output: tools "
        "to search, to read documents as Markdown, and to explain why a URL is crawled or not. Nothing is changed. `scrapy console --mcp NAME` "
        "serves the same by HTTP. Needs crawlspace[mcp]. "
        "Exit status: 0 the assistant has ended it; 1 mcp is not installed, or a collection has a fault; 2 wrong use."
    )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if not args:
            raise UsageError("name the collections that an assistant may ask, as in: scrapy mcp demo")
        check_extra_of("scrapy mcp")
        # they need the extra
        from crawlspace.console.assistants.server import mcp_server  # noqa: PLC0415
        from crawlspace.console.assistants.tools import AssistantTools  # noqa: PLC0415

        server = mcp_server(AssistantTools(ProjectCollections(self.project_settings()), args, SystemClock()))
        assert isinstance(sys.stdout, EscapingOutput)
        with redirect_stdout(sys.stdout.unescaped):  # what is written there is for a program
            server.run("stdio")
        return 0
