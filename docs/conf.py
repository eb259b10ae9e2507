"""How Sphinx builds the pages of this folder as a site (`make docs`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # the extension `site_of_pages`

project = "crawlspace"
author = "crawlspace contributors"
extensions = ["myst_parser", "site_of_pages"]
myst_heading_anchors = 6
myst_fence_as_directive = ["mermaid"]
highlight_language = "text"

html_theme = "furo"
html_title = "crawlspace"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_use_index = False
html_domain_indices = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
