"""Certificates of one site: the authorities that vouch for it, and the client's own."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.certificates import authority, certificate
from tests.conftest import MakeProject, assert_same
from tests.http import Reply, Request
from tests.integration.stored import FAST, collection, indexed
from tests.sites import Server, Site, page, serve, status, text

HTTPS = "allow address 127.0.0.0/8\n"


def site() -> Site:
    return Site({"/robots.txt": text(""), "/": page("Home", text="home", links=["/a"]), "/a": page("A", text="the page a")})


def asking(folder: Path, trusted: Path | None) -> tuple[ssl.SSLContext, Path]:
    """What a server speaks TLS with, which asks for a certificate where one is trusted, and the authority that vouches for it."""
    vouching, own = authority(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    if trusted is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(trusted)
    return context, vouching


def settings(server: Server, **files: Path) -> str:
    entry = {key: str(path) for key, path in files.items()}
    return f"{FAST}DOWNLOAD_VERIFY_CERTIFICATES = True\nCRAWLSPACE_SITES = {{{server.netloc!r}: {entry!r}}}\n"


@pytest.mark.full
def test_a_site_that_asks_for_a_certificate(project: MakeProject, tmp_path: Path) -> None:
    own, other = certificate(tmp_path / "own.pem"), certificate(tmp_path / "other.pem")
    key, alone = tmp_path / "key.pem", tmp_path / "alone.pem"
    pem = own.read_text()
    cut = pem.index("-----BEGIN CERTIFICATE-----")
    key.write_text(pem[:cut])
    alone.write_text(pem[cut:])
    tls, vouching = asking(tmp_path, own)
    with serve(site(), tls=tls) as server:
        for files in ({"client_certificate": own}, {"client_certificate": alone, "client_key": key}):
            demo = project(collection(server.url("/"), rules=HTTPS, settings=settings(server, ca_file=vouching, **files)))
            tried = demo.scrapy("login", "demo", server.url("/")).succeeded()
            assert tried.stdout.splitlines()[0] == f"log-in       a client certificate (CRAWLSPACE_SITES['{server.netloc}'])"
            demo.crawl("demo").succeeded()
            assert_same(indexed(demo), ["/", "/a"])
        for files in ({}, {"client_certificate": other}):
            demo = project(collection(server.url("/"), rules=HTTPS, settings=settings(server, ca_file=vouching, **files)))
            demo.crawl("demo")
            assert indexed(demo) == []


def test_the_authority_of_a_site(project: MakeProject, tmp_path: Path) -> None:
    tls, vouching = asking(tmp_path, None)
    with serve(site(), tls=tls) as server:
        demo = project(collection(server.url("/"), rules=HTTPS, settings=settings(server)))
        assert "is of an unknown issuer (for 127.0.0.1, issued by An authority)" in demo.crawl("demo").stderr
        assert indexed(demo) == []
        (demo.collections / "demo" / "settings.py").write_text(settings(server, ca_file=vouching))
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a"])


def test_a_certificate_that_is_refused_later_deletes_nothing(project: MakeProject, tmp_path: Path) -> None:
    own = certificate(tmp_path / "own.pem")
    tls, vouching = asking(tmp_path, own)
    pages, is_expired = site(), False

    def behind(reply: Reply, _: Request) -> Reply:
        return status(400, body="<h1>400 The SSL certificate error</h1>") if is_expired else reply

    asked = Site({path: partial(behind, pages.reply_to(Request("GET", path, {}, b"", 0.0))) for path in pages})
    with serve(asked, tls=tls) as server:
        demo = project(
            collection(server.url("/"), rules=HTTPS, settings=settings(server, ca_file=vouching, client_certificate=own))
        )
        demo.crawl("demo").succeeded()
        is_expired = True
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        refused = demo.crawl("demo")
        assert "is refused by" in refused.stderr
    assert_same(indexed(demo), ["/", "/a"])


WRONG = [
    ({"ca_file": "nowhere.pem"}, "['ca_file'] is '{}/nowhere.pem', which cannot be read: No such file or directory"),
    ({"ca_file": "text.pem"}, "['ca_file'] is '{}/text.pem', which has nothing in PEM"),
    ({"ca_file": "broken.pem"}, "['ca_file'] is '{}/broken.pem', which cannot be used: "),
    ({"client_key": "key.pem"}, "has 'client_key' and no 'client_certificate', which it is for"),
    ({"client_certificate": "alone.pem"}, "cannot use '{}/alone.pem':"),
    (
        {"client_certificate": "alone.pem", "client_key": "locked.pem"},
        "has a key that is encrypted, in '{}/locked.pem': decrypt it",
    ),
]


@pytest.mark.parametrize(("files", "sentence"), WRONG)
def test_files_that_cannot_be_used(project: MakeProject, tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    pem = certificate(tmp_path / "own.pem").read_text()
    (tmp_path / "alone.pem").write_text(pem[pem.index("-----BEGIN CERTIFICATE-----") :])
    (tmp_path / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n")
    (tmp_path / "text.pem").write_text("no certificate")
    (tmp_path / "locked.pem").write_bytes(locked())
    entry = {key: str(tmp_path / name) for key, name in files.items()}
    demo = project(collection("https://127.0.0.1:1/", settings=f"{FAST}CRAWLSPACE_SITES = {{'127.0.0.1:1': {entry!r}}}\n"))
    crawled = demo.crawl("demo")
    assert crawled.returncode == 1
    assert sentence.format(tmp_path) in crawled.stderr
    assert "Traceback" not in crawled.stderr


def locked() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.BestAvailableEncryption(b"secret"))
