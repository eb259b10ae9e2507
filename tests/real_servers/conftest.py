"""What is here needs real servers: `make test-servers` starts them, and names them in the environment."""

from __future__ import annotations

import os

NEEDED = {
    "CRAWLSPACE_TEST_OPENSEARCH_URL": ["test_opensearch.py", "test_search.py", "test_examples_of_the_docs.py"],
    "CRAWLSPACE_TEST_SOLR_URL": ["test_solr*.py"],
}
collect_ignore_glob = [name for variable, names in NEEDED.items() if variable not in os.environ for name in names]
