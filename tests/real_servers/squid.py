"""A Squid of a test's own: in the foreground, with a configuration, a port and a folder of its own, and a log-in."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.real_servers.processes import running

USER, PASSWORD = "crawler", "s3cret-of-squid"
VARIABLE = "CRAWLSPACE_TEST_SQUID"
"""Environment variable with the path of the program."""
_CONFIGURATION = """\
http_port 127.0.0.1:{port}
auth_param basic program {folder}/who
auth_param basic realm proxy
acl known proxy_auth REQUIRED
acl denied dstdomain denied.invalid
http_access deny denied
http_access allow known
http_access deny all
hosts_file {folder}/hosts
cache deny all
pid_filename none
netdb_filename none
pinger_enable off
access_log stdio:{folder}/access.log
cache_log {folder}/cache.log
cache_store_log none
coredump_dir {folder}
shutdown_lifetime 0 seconds
"""
_HELPER = """\
#!/bin/sh
while read -r user password rest; do
  if [ "$user $password" = "{user} {password}" ]; then echo OK; else echo ERR; fi
done
"""
_READY = "Accepting HTTP Socket connections"


class Squid:
    """A running Squid."""

    def __init__(self, port: int, folder: Path, process: subprocess.Popen[str]) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self._folder = folder
        self._process = process

    def log(self) -> list[tuple[str, str, str]]:
        """What it was asked for: the result, what was asked, and by whom."""
        lines = [line.split() for line in (self._folder / "access.log").read_text().splitlines()]
        return [(line[3], f"{line[5]} {line[6]}", line[7]) for line in lines]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def squid(hosts: Sequence[str]) -> Iterator[Squid]:
    """Start a Squid that knows these hosts, all on 127.0.0.1, and only the user above; `denied.invalid` it allows to nobody."""
    program = os.environ.get(VARIABLE) or "squid"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="squid-"))
    try:
        folder.chmod(0o777)  # started by root it works as another user
        (folder / "squid.conf").write_text(_CONFIGURATION.format(port=port, folder=folder))
        (folder / "hosts").write_text("".join(f"127.0.0.1 {host}\n" for host in hosts))
        (folder / "who").write_text(_HELPER.format(user=USER, password=PASSWORD))
        (folder / "who").chmod(0o755)
        with running([program, "-N", "-d", "1", "-f", str(folder / "squid.conf")], ready=_READY) as process:
            yield Squid(port, folder, process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
