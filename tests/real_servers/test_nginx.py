"""Log-ins at nginx: a password by `auth_basic`, and certificates of clients by `ssl_verify_client`.

nginx runs as a process of the test's own, in the foreground, and with nothing of the machine's configuration.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from scrapy.http import Response

from crawlspace.config.site_tls import SiteTls
from crawlspace.runtime.http.errors import KeptConnectionClosed
from tests.certificates import authority
from tests.conftest import MakeProject, assert_same
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.notifications import notify, wait_until
from tests.unit.runtime.http.fetching import Crawl, asyncio_is_there, crawling

RULES = "allow address 127.0.0.0/8\n"
PASSWORD = "secret of nginx"
PAGES = ["/", "/a.html", "/b.html"]
CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  types {{ text/html html; text/plain txt; }}
  server {{
    listen 127.0.0.1:{port}{tls};
    root {folder}/www;
    index index.html;
    {more}
  }}
}}
"""


@dataclass(frozen=True)
class Nginx:
    url: str
    folder: Path

    @property
    def netloc(self) -> str:
        return self.url.partition("://")[2]

    def answers(self) -> list[int]:
        """The status codes of all answers, in order."""
        return [int(line.split('" ')[1].split()[0]) for line in (self.folder / "access.log").read_text().splitlines()]


@contextmanager
def nginx(folder: Path, *, tls: bool = False, http2: bool = False, more: str) -> Iterator[Nginx]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    assert program is not None, "nginx is not installed"
    www = folder / "www"
    www.mkdir()
    (www / "robots.txt").write_text("")
    links = "".join(f"<a href='{path}'>{path}</a>" for path in PAGES)
    for path in PAGES:
        (www / (path.strip("/") or "index.html")).write_text(f"<title>{path}</title><p>the text of {path}</p>{links}")
    folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    written = CONFIGURATION.format(folder=folder, port=port, tls=" ssl" * tls + " http2" * http2, more=more)
    if (user := folder.owner()) == "root":  # else its worker would be another user, who may not read here
        written = f"user {user};{written}"
    (folder / "nginx.conf").write_text(written)
    (folder / "access.log").touch()
    with subprocess.Popen(
        [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    ) as process:
        try:
            wait_until(lambda: _accepts(port, process))
            yield Nginx(f"http{'s' if tls else ''}://127.0.0.1:{port}", folder)
        finally:
            process.terminate()
            process.wait()


def _accepts(port: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "nginx has ended"
    notify()
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def settings(server: Nginx, entry: Mapping[str, object]) -> str:
    return f"{FAST}DOWNLOAD_VERIFY_CERTIFICATES = True\nCRAWLSPACE_SITES = {{{server.netloc!r}: {dict(entry)!r}}}\n"


def test_a_password(project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "nginx"
    folder.mkdir()
    digest = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
    (folder / "users").write_text(f"crawler:{{SHA}}{digest}\n")
    (folder / "users").chmod(0o644)
    login = {"type": "basic", "user": "crawler", "password": "env:NGINX_PASSWORD"}
    with nginx(folder, more=f'auth_basic "the wiki"; auth_basic_user_file {folder}/users;') as server:
        demo = project(
            collection(f"{server.url}/", rules=RULES, settings=settings(server, {"login": login, "allow_plain_http": True}))
        )
        monkeypatch.setenv("NGINX_PASSWORD", "wrong")
        refused = demo.crawl("demo")
        assert "is refused by" in refused.stderr
        assert set(server.answers()) == {401}
        assert 1 <= len(server.answers()) <= 2
        before = len(server.answers())
        demo.crawl("demo")
        assert len(server.answers()) == before, "a refused password is not tried again"
        monkeypatch.setenv("NGINX_PASSWORD", PASSWORD)
        demo.crawl("demo").succeeded()
        assert set(server.answers()[before:]) <= {200, 404}
        assert_same(indexed(demo), PAGES)
        monkeypatch.setenv("NGINX_PASSWORD", "wrong")
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        demo.crawl("demo")
        assert server.answers().count(401) <= before + 2
        assert_same(indexed(demo), PAGES)


class Authority:
    """An authority that signs certificates for the server and for clients."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None), days=2))

    def certificate(self, name: str, *, days: int = 2) -> Path:
        """Write a certificate with its key; one of a negative number of days has ended."""
        key = ec.generate_private_key(ec.SECP256R1())
        of = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        file = self._folder / f"{name}.pem"
        file.write_bytes(secret + self._signed(of, key, address, both, days=days))
        return file

    def _signed(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType, days: int) -> bytes:
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(
            self._name, name, key.public_key(), x509.random_serial_number(), now - timedelta(3), now + timedelta(days)
        )
        for extension in extensions:
            made = made.add_extension(extension, critical=False)
        return made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_certificates_of_clients(project: MakeProject, tmp_path: Path) -> None:
    folder = tmp_path / "nginx"
    folder.mkdir()
    ours, another = Authority(tmp_path, "ours"), Authority(tmp_path, "another")
    own = ours.certificate("server")
    more = (
        f"ssl_certificate {own}; ssl_certificate_key {own}; ssl_client_certificate {ours.file}; ssl_verify_client on;"
        "location = /who { return 200 $ssl_client_s_dn; }"
    )
    good = {"client_certificate": str(ours.certificate("crawler"))}
    with nginx(folder, tls=True, more=more) as server:
        vouched = {"ca_file": str(ours.file)}
        demo = project(collection(f"{server.url}/", rules=RULES, settings=settings(server, {**vouched, **good})))
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), PAGES)
        without = project(collection(f"{server.url}/", rules=RULES, settings=settings(server, vouched)))
        without.crawl("demo")
        assert indexed(without) == []
        assert set(statuses(without).values()) == {400}
        bad = (
            {"client_certificate": str(another.certificate("stranger"))},
            {"client_certificate": str(ours.certificate("expired", days=-1))},
        )
        for entry in bad:
            before = len(server.answers())
            demo.write({"demo/settings.py": settings(server, {**vouched, **entry})})
            demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
            crawled = demo.crawl("demo")
            answers = server.answers()[before:]
            assert set(answers) == {400}, crawled.stderr
            assert_same(indexed(demo), PAGES)
            assert len(answers) <= len(PAGES), "no password is tried: those that were under way"
            assert "is refused by" in crawled.stderr
            assert set(statuses(demo).values()) == {200}
        demo.write({"demo/settings.py": settings(server, {**vouched, **good})})
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        demo.crawl("demo").succeeded()
        assert set(statuses(demo).values()) == {200}
        assert_same(indexed(demo), PAGES)


def test_http_2_where_nginx_offers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream is a request: several at a time have one connection. One that nginx refuses, as it ends that, is sent once more by the crawl."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    vouching, own = authority(tmp_path)
    more = f"ssl_certificate {own}; ssl_certificate_key {own}; keepalive_requests 20;"

    async def fetched(crawl: Crawl, url: str) -> Response:
        with suppress(KeptConnectionClosed):
            return await crawl.fetch(url)
        return await crawl.fetch(url)

    async def run(server: Nginx) -> None:
        async with crawling(with_session=True, tls=SiteTls("the entry", vouching)) as crawl:
            for _ in range(3):
                paths = PAGES * 4
                responses = await asyncio.gather(*(fetched(crawl, f"{server.url}{path}") for path in paths))
                for path, response in zip(paths, responses, strict=True):
                    assert (response.status, response.protocol) == (200, "h2")
                    assert response.certificate is not None
                    assert f"<title>{path}</title>".encode() in response.body
            missing = await fetched(crawl, f"{server.url}/missing")
            assert (missing.status, missing.headers["Content-Type"]) == (404, b"text/html")

    with asyncio_is_there(monkeypatch), nginx(folder, tls=True, http2=True, more=more) as server:
        asyncio.run(run(server))
    assert server.answers() == [200] * 36 + [404]
