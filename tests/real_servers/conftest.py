"""What is here needs real servers: `make test-servers` starts them, and names them in the environment."""

from __future__ import annotations

import os

from tests.integration.conftest import team  # noqa: F401 - a fixture

NEEDED = {
    "test_opensearch.py": {"CRAWLSPACE_TEST_OPENSEARCH_URL"},
    "test_solr*.py": {"CRAWLSPACE_TEST_SOLR_URL"},
    "test_squid.py": {"CRAWLSPACE_TEST_SQUID"},
    "test_search.py": {"CRAWLSPACE_TEST_OPENSEARCH_URL", "CRAWLSPACE_TEST_SOLR_URL"},
    "test_nginx.py": {"CRAWLSPACE_TEST_NGINX"},
    "test_prometheus.py": {"CRAWLSPACE_TEST_PROMETHEUS"},
    "test_staged_faults.py": {"CRAWLSPACE_TEST_PROMETHEUS"},
    "test_kerberos.py": {"CRAWLSPACE_TEST_KERBEROS"},
    "test_examples_of_the_docs.py": {"CRAWLSPACE_TEST_OPENSEARCH_URL"},
}
"""Environment variables of which one must be there."""
collect_ignore_glob = [name for name, variables in NEEDED.items() if not variables & os.environ.keys()]
