"""What is here needs real servers: `make test-servers` starts them, and names them in the environment."""

from __future__ import annotations

import os

collect_ignore_glob = [
    f"test_{name}*.py" for name in ("opensearch", "solr") if f"CRAWLSPACE_TEST_{name.upper()}_URL" not in os.environ
]
