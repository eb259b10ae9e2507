"""A Kerberos realm of a test's own, and an Apache that checks its tickets: on loopback, with ports of their own and all files in one folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.real_servers.processes import running

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
"""With the folders of programs that the path of a user may not have."""
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "kvno", "apache2")
MODULES = Path("/usr/lib/apache2/modules")
GSSAPI = MODULES / "mod_auth_gssapi.so"
REALM = "CRAWL.TEST"
PASSWORD = "s3cret-of-the-realm"
"""Of all users."""
LIFETIME_S = 12_345
"""Of the tickets that a person has fetched: a number by which they are found in a file."""
DAY_S = 86_400
_READY = {"krb5kdc": "krb5kdc: starting", "apache2": "resuming normal operations"}
_LIBRARY = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  forwardable = true
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
_KEY_SERVER = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
"""
_APACHE = """\
ServerRoot {folder}
ServerName 127.0.0.1
PidFile {folder}/apache.pid
Mutex file:{folder}/apache default
ErrorLog "|/bin/cat"
{modules}
{user}
StartServers 1
TypesConfig /dev/null
AddType text/html html
AddType text/plain txt
DirectoryIndex index.html
SSLCertificateFile {certificate}
Protocols h2 http/1.1
LogFormat "%A %H %k %u %>s %U" of_tests
CustomLog {folder}/apache/access.log of_tests
{hosts}
<Directory {folder}/www>
  AuthType GSSAPI
  AuthName "the wiki"
  GssapiCredStore keytab:{folder}/services.keytab
  GssapiAllowedMech krb5
  GssapiDelegCcacheDir {folder}/apache/delegated
  AuthzSendForbiddenOnFailure On
  Require user crawler@{realm}
</Directory>
"""
_APACHE_MODULES = ("mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi", "alias", "dir", "http2", "mime", "ssl")


def missing() -> list[str]:
    """Return the programs and modules that the tests need and that are not installed."""
    names = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return names + [GSSAPI.name] * (not GSSAPI.is_file())


def _program(name: str) -> str:
    program = shutil.which(name, path=PATH)
    assert program is not None, f"{name} is not installed"
    return program


def free_port(host: str = "127.0.0.1") -> int:
    with socket.create_server((host, 0)) as free:
        return int(free.getsockname()[1])


@dataclass
class Realm:
    """A running key server. `environment`: of processes that are to use it; without tickets and keys."""

    folder: Path
    environment: dict[str, str]
    _cursor: int = field(default=0, init=False)

    def run(self, name: str, *arguments: str, given: str = "", **environment: str) -> str:
        """Run a program of Kerberos, and return what it prints."""
        done = subprocess.run(
            [_program(name), *arguments],
            env={**os.environ, **self.environment, **environment},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{name} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def administer(self, *commands: str) -> None:
        """Change the database of principals."""
        for command in commands:
            self.run("kadmin.local", "-r", REALM, *command.split())

    def user(self, name: str) -> None:
        """Add a user, who has to prove the password to get a ticket."""
        self.administer(f"addprinc +requires_preauth -pw {PASSWORD} {name}")

    def service(self, host: str) -> None:
        """Add the service HTTP of a host, which may be trusted with the tickets of users; Apache has its key."""
        self.administer(f"addprinc -randkey +ok_as_delegate HTTP/{host}")
        self.new_key(host)

    def new_key(self, host: str) -> None:
        """Make a new key for the service of a host, and give it to Apache."""
        self.administer(f"ktadd -k {self.folder}/services.keytab HTTP/{host}")
        (self.folder / "services.keytab").chmod(0o644)  # Apache reads it as another user

    def keytab(self, name: str, file: Path) -> Path:
        """Write the keys of a user to a file."""
        file.unlink(missing_ok=True)
        self.administer(f"ktadd -norandkey -k {file} {name}")
        return file

    def ticket(self, name: str, file: Path) -> Path:
        """Fetch a ticket of a user into a file."""
        file.unlink(missing_ok=True)
        self.run("kinit", "-c", f"FILE:{file}", "-f", "-l", f"{LIFETIME_S}s", name, given=f"{PASSWORD}\n")
        return file

    def requests(self) -> list[str]:
        """Return what the key server was asked since the last call: the kind of request, its result, and the service."""
        lines = (self.folder / "kdc.log").read_text().splitlines()
        new, self._cursor = lines[self._cursor :], len(lines)
        found = []
        for line in new:
            if "_REQ (" in line:
                kind, _, rest = line.partition("(info): ")[2].partition(" (")
                result = rest.partition("127.0.0.1: ")[2].partition(":")[0]
                found.append(f"{kind} {result} {rest.partition(' for ')[2].partition(f'@{REALM}')[0]}")
        return found


@contextmanager
def realm() -> Iterator[Realm]:
    """Start the key server of a realm without principals."""
    folder, port = Path(tempfile.mkdtemp(prefix="kerberos-")), free_port()
    folder.chmod(0o755)  # started by root Apache works as another user
    try:
        (folder / "krb5.conf").write_text(_LIBRARY.format(realm=REALM, port=port))
        (folder / "kdc.conf").write_text(_KEY_SERVER.format(realm=REALM, port=port, folder=folder))
        environment = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder}/none",
            "KRB5_CLIENT_KTNAME": f"FILE:{folder}/none",
            "KRB5_KTNAME": f"FILE:{folder}/services.keytab",
            "KRB5RCACHEDIR": str(folder / "apache"),
        }
        (folder / "apache").mkdir()
        (folder / "apache").chmod(0o777)
        made = Realm(folder, environment)
        made.run("kdb5_util", "create", "-s", "-P", "s3cret of the database", "-r", REALM)
        command = [_program("krb5kdc"), "-n", "-r", REALM]
        with running(command, ready=_READY["krb5kdc"], environment={**os.environ, **environment}):
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Answer:
    """A line of Apache's log."""

    address: str
    protocol: str
    is_on_kept_connection: bool
    user: str
    status: int
    path: str


class Apache:
    """A running Apache; all its hosts have the same pages."""

    def __init__(self, folder: Path, urls: Mapping[str, str]) -> None:
        self.urls = urls
        """By the address of the host; that of `127.0.0.1` is with TLS."""
        self._folder = folder
        self._cursor = 0

    def url(self, path: str = "/", *, host: str = "127.0.0.1") -> str:
        return self.urls[host] + path

    def answers(self) -> list[Answer]:
        """Return the answers since the last call."""
        lines = (self._folder / "access.log").read_text().splitlines()
        new, self._cursor = lines[self._cursor :], len(lines)
        found = []
        for line in new:
            address, protocol, number, user, status, path = line.split()
            found.append(Answer(address, protocol, number != "0", user, int(status), path))
        return found

    def delegated(self) -> list[str]:
        """Return the users whose tickets it was given to act for them."""
        return sorted(path.name for path in (self._folder / "delegated").iterdir())


@contextmanager
def apache(at: Realm, pages: Mapping[str, str], *, hosts: Sequence[str], certificate: Path, redirects: str) -> Iterator[Apache]:
    """Start an Apache that lets only `crawler` in: on 127.0.0.1 with TLS, and on further addresses without.

    `redirects`: lines of its configuration.
    """
    folder, own = at.folder, at.folder / "apache"
    (folder / "www").mkdir()
    for path, content in pages.items():
        (folder / "www" / (path.strip("/") or "index.html")).write_text(content)
    (own / "delegated").mkdir()
    (own / "delegated").chmod(0o777)
    ports = {host: free_port(host) for host in ("127.0.0.1", *hosts)}
    blocks = [
        f"Listen {host}:{port}\n<VirtualHost {host}:{port}>\nDocumentRoot {folder}/www\n"
        f"SSLEngine {'on' if host == '127.0.0.1' else 'off'}\n</VirtualHost>"
        for host, port in ports.items()
    ]
    written = _APACHE.format(
        folder=folder,
        realm=REALM,
        certificate=certificate,
        modules="\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in _APACHE_MODULES),
        user="User www-data\nGroup www-data" if os.geteuid() == 0 else "",
        hosts="\n".join([*blocks, redirects]),
    )
    (folder / "apache.conf").write_text(written)
    command = [_program("apache2"), "-D", "FOREGROUND", "-f", str(folder / "apache.conf")]
    environment = {**os.environ, **at.environment}
    with running(command, ready=_READY["apache2"], environment=environment, ended_by=signal.SIGTERM):
        urls = {host: f"http{'s' if host == '127.0.0.1' else ''}://{host}:{port}" for host, port in ports.items()}
        yield Apache(own, urls)


def expire(cache: Path) -> None:
    """Have the tickets in a file be of the day before."""
    content = bytearray(cache.read_bytes())
    for at in range(len(content) - 12):
        began, starts, ends = struct.unpack_from(">3I", content, at)
        if ends == began + LIFETIME_S and (not starts or began <= starts < ends):
            struct.pack_into(">3I", content, at, began - DAY_S, starts - DAY_S if starts else 0, ends - DAY_S)
    cache.write_bytes(content)


def set_clock(cache: Path, ahead_s: int) -> None:
    """Have those who use a file of tickets take the clock of the machine for wrong by so much: its head has that of the key server."""
    content = cache.read_bytes()
    version, length = struct.unpack_from(">2sH", content)
    assert version == b"\x05\x04"
    cache.write_bytes(version + struct.pack(">HHHii", 12, 1, 8, ahead_s, 0) + content[4 + length :])
