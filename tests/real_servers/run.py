"""Runs tests on real servers: `python -m tests.real_servers.run [server ...] [pytest arguments]`.

Each search server is a Java program that Maven's packages make, started for its tests and ended after them; JDK 17 and Maven must be there.
Squid, nginx, Prometheus, and Apache with a key server of Kerberos, are started by their tests. Nothing is skipped: a server that cannot be started ends the run with exit status 1. The packages are kept in `build/servers`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread

from tests.real_servers import kerberos

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "servers"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
NEEDED = "a JDK (17 or newer), Maven, squid, nginx, prometheus, krb5-kdc, krb5-admin-server, krb5-user, apache2 and libapache2-mod-auth-gssapi"
"""As Debian's packages are named."""
_TOOLS = ("java", "javac", "mvn")
_OPTIONS = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LINES_SHOWN = 40
_AT_ONCE = 2
"""So many servers have their tests at one time: each has its own ports and folder, and its tests run one after the other."""
_MAKING = Lock()
"""Maven's folder of packages is for one at a time."""
_READY = re.compile(rb"READY (http://\S+)")


class NoServerError(Exception):
    """A server could not be made or started."""


@dataclass(frozen=True)
class Server:
    """A server, and the tests that run on it."""

    name: str
    program: str
    """The class that starts it, in the folder of its name."""
    variable: str
    """Environment variable that tells the tests its URL."""
    tests: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """What else the tests are told."""
    url: str = ""
    """It is there already, and is not started; or the path of the program that its tests start."""


SEARCH_TESTS = (
    "tests/contract/test_sinks.py",
    "tests/contract/test_search.py",
    "tests/unit/index/opensearch",
    "tests/unit/index/test_faulty_servers.py",
    "tests/unit/index/test_markers.py",
    "tests/unit/index/test_orders.py",
    "tests/integration/test_search_servers.py",
    "tests/integration/test_sinks.py",
    "tests/integration/test_audit.py",
    "tests/integration/test_rebuild.py",
    "tests/integration/test_servers_tutorial.py",
    "tests/integration/test_reindex_sinks.py",
    "tests/integration/test_restored_server.py",
    "tests/real_servers/test_opensearch.py",
    "tests/real_servers/test_search.py",
    "tests/real_servers/test_examples_of_the_docs.py",
)
SOLR_TESTS = (
    "tests/contract/test_sinks.py",
    "tests/contract/test_search.py",
    "tests/unit/index/solr",
    "tests/unit/index/test_faulty_servers.py",
    "tests/unit/index/test_markers.py",
    "tests/unit/admin/test_rebuild.py",
    "tests/integration/test_search_servers.py",
    "tests/integration/test_solr_sink.py",
    "tests/integration/test_servers_tutorial.py",
    "tests/integration/test_rebuild_solr.py",
    "tests/integration/test_restored_server.py",
    "tests/real_servers/test_solr.py",
    "tests/real_servers/test_search.py",
    "tests/real_servers/test_solr_examples.py",
)
IN_A_CLOUD = (*SOLR_TESTS, "tests/real_servers/test_solr_cloud.py", "-k", "not a_core_that and not test_servers_tutorial")
"""A collection cannot be unloaded and loaded again, its configuration is not in a folder, and the tutorial makes a core."""
ELASTICSEARCH = {"CRAWLSPACE_TEST_SEARCH_TYPE": "elasticsearch"}
CURRENT = "CRAWLSPACE_TEST_ES_URL"
"""Environment variable with the URL of a current Elasticsearch, which Maven does not have; it has no log-in, and may lose any index."""
SBIN = "/usr/sbin:/usr/local/sbin"
"""Where programs are that the path of a user may not have."""
SQUID, NGINX, PROMETHEUS = (
    shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}") or "" for name in ("squid", "nginx", "prometheus")
)
PROMETHEUS_TESTS = ("tests/real_servers/test_prometheus.py", "tests/real_servers/test_staged_faults.py")
KERBEROS = "" if kerberos.missing() else str(kerberos.GSSAPI)
SERVERS = (
    Server("solrcloud", "Cloud", "CRAWLSPACE_TEST_SOLR_URL", IN_A_CLOUD),  # first: it takes longest, and mostly waits
    Server("opensearch", "SingleNode", "CRAWLSPACE_TEST_OPENSEARCH_URL", SEARCH_TESTS),
    Server("elasticsearch", "SingleNode", "CRAWLSPACE_TEST_OPENSEARCH_URL", SEARCH_TESTS, ELASTICSEARCH),
    Server("solr", "Standalone", "CRAWLSPACE_TEST_SOLR_URL", SOLR_TESTS),
    Server("squid", "", "CRAWLSPACE_TEST_SQUID", ("tests/real_servers/test_squid.py",), url=SQUID),
    Server("nginx", "", "CRAWLSPACE_TEST_NGINX", ("tests/real_servers/test_nginx.py",), url=NGINX),
    Server("prometheus", "", "CRAWLSPACE_TEST_PROMETHEUS", PROMETHEUS_TESTS, url=PROMETHEUS),
    Server("kerberos", "", "CRAWLSPACE_TEST_KERBEROS", ("tests/real_servers/test_kerberos.py",), url=KERBEROS),
)


def main(arguments: Sequence[str]) -> int:
    servers = [*SERVERS]
    if url := os.environ.get(CURRENT):
        servers.append(
            Server("current-elasticsearch", "", "CRAWLSPACE_TEST_OPENSEARCH_URL", SEARCH_TESTS, ELASTICSEARCH, url.rstrip("/"))
        )
    rest = list(arguments)
    chosen = set()
    while rest and rest[0] in {server.name for server in servers}:
        chosen.add(rest.pop(0))
    servers = [server for server in servers if not chosen or server.name in chosen]
    if missing := _missing(servers):
        print(f"{missing} not found: install {NEEDED}", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        passed = list(pool.map(partial(_passes, arguments=rest, shown_at_once=len(servers) == 1), servers))
    failed = [server.name for server, is_fine in zip(servers, passed, strict=True) if not is_fine]
    if failed:
        print(f"failed with {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _missing(servers: Sequence[Server]) -> str:
    """Return the programs that these servers need and that are not there."""
    tools = _TOOLS if any(server.program for server in servers) else ()
    named = [server.name for server in servers if not server.program and not server.url]
    parts = [f"kerberos ({', '.join(kerberos.missing())})" if name == "kerberos" else name for name in named]
    return ", ".join([*(tool for tool in tools if shutil.which(tool) is None), *parts])


def _passes(server: Server, *, arguments: Sequence[str], shown_at_once: bool) -> bool:
    """Run the tests on one server; what they print is shown as it comes, or as a whole at the end."""
    if shown_at_once:
        print(f"{server.name}:", flush=True)
    try:
        with nullcontext(server.url) if server.url else started(server.name, server.program) as url:
            environment = {**os.environ, **server.environment, server.variable: url}
            command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-q", *(arguments or server.tests)]
            output, errors = (None, None) if shown_at_once else (subprocess.PIPE, subprocess.STDOUT)
            done = subprocess.run(command, cwd=ROOT, env=environment, stdout=output, stderr=errors, text=True, check=False)
    except NoServerError as error:
        print(error, file=sys.stderr)
        return False
    if not shown_at_once:
        print(f"{server.name}:\n{done.stdout}", flush=True)
    return done.returncode == 0


@contextmanager
def started(name: str, program: str) -> Iterator[str]:
    """Start a server with a folder for its data and the folder of the project, and yield its URL once it answers. Raises NoServerError."""
    with running(name, program) as server:
        yield server.url


@contextmanager
def running(name: str, program: str) -> Iterator[RunningServer]:
    """Start a server as `started` does, and yield it."""
    with _MAKING:
        classes, classpath = _made(Path(__file__).parent / name, program)
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        command = ["java", *_OPTIONS, "-cp", f"{classes}{os.pathsep}{classpath}", program, str(Path(folder, "data")), str(ROOT)]
        server = RunningServer(name, command, Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.kill()


class RunningServer:
    """A server, which can be killed and started again with its data."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.url = ""
        self._name = name
        self._command = command
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        """Start it, and return once it answers. Raises NoServerError."""
        self._process = process = subprocess.Popen(
            [*self._command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self._folder,
        )
        said: deque[str] = deque(maxlen=_LINES_SHOWN)
        urls: list[str] = []
        is_known = Event()

        def listen() -> None:
            """Read all that it says: a pipe that is full would stop it."""
            for line in process.stdout or ():
                said.append(line.decode(errors="replace"))
                if (ready := _READY.search(line)) is not None:
                    urls.append(ready[1].decode())
                    is_known.set()
            is_known.set()

        Thread(target=listen, daemon=True).start()
        is_known.wait()
        if not urls:
            raise NoServerError(f"{self._name} did not start; the last it said:\n{''.join(said)}")
        self.url = urls[0]

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Kill it, and start it again on the same port, which it must take as its last argument."""
        self.kill()
        self.start(self.url.rpartition(":")[2])


def _made(source: Path, program: str) -> tuple[Path, str]:
    """Return the folder of a server's class, and the class path of what it needs; both are made once for each version of the sources."""
    sources = [source / "pom.xml", source / f"{program}.java"]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = BUILT / f"{source.name}-{key}"
    listed = folder / "classpath.txt"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        packages = f"-Dmaven.repo.local={BUILT / 'packages'}"
        _run(["mvn", "-B", "-q", "-f", str(sources[0]), packages, f"{PLUGIN}:build-classpath", f"-Dmdep.outputFile={listed}"])
        _run(["javac", "-nowarn", "-cp", listed.read_text(), "-d", str(folder), str(sources[1])])
        (folder / "done").touch()
    return folder, listed.read_text()


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoServerError(f"{command[0]} failed:\n{done.stdout[-3_000:]}{done.stderr[-3_000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
