"""What is here needs a real browser: `make test-browser` looks for one, and names it in the environment."""

from __future__ import annotations

import os

collect_ignore_glob = [] if "CRAWLSPACE_TEST_BROWSER" in os.environ else ["test_*.py"]
