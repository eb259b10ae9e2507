"""What is here needs real servers: `make test-servers` starts them, and names them in the environment."""

from __future__ import annotations

import os

collect_ignore_glob = [] if "CRAWLSPACE_TEST_OPENSEARCH_URL" in os.environ else ["test_*.py"]
