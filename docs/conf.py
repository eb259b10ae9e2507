"""How Sphinx builds the pages of this folder as a site (`make docs`)."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]  # the extension `site_of_pages`, and the product for its docstrings

project = "crawlspace"
author = "crawlspace contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "site_of_pages"]
myst_heading_anchors = 6
myst_fence_as_directive = ["mermaid"]
highlight_language = "text"
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = "crawlspace"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_use_index = False
html_domain_indices = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
