"""The certificate with which the proxy of a tab answers for every https host, so that it can judge what pages ask for.

It is made for one crawl and kept in memory. Only the browser of the crawl accepts it, by the hash of its key (`--ignore-certificate-errors-
spki-list`); servers' own certificates are verified where the crawl connects to them.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

_LASTS = timedelta(days=365)
_EARLIER = timedelta(days=1)


class ProxyCertificate(NamedTuple):
    """What a proxy answers TLS connections with."""

    context: ssl.SSLContext
    key_hash: str
    """SHA-256 of the public key (SPKI), in Base64."""


def make_certificate() -> ProxyCertificate:
    """Return a certificate with a key of its own, and no name: the browser compares the key only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "crawlspace")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _LASTS)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:  # readable by this user only; ssl takes certificates from files
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)
    context.set_alpn_protocols(["http/1.1"])
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return ProxyCertificate(context, base64.b64encode(hashlib.sha256(public).digest()).decode())
