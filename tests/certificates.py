"""A certificate that nobody vouches for, and one of an authority of one's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(file: Path) -> Path:
    """Write a key and its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a.example")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1)).sign(
        key, hashes.SHA256()
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


def authority(folder: Path) -> tuple[Path, Path]:
    """Write the certificate of an authority, and a key with a certificate of it for 127.0.0.1; return both files."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("An authority", "127.0.0.1")]
    now = datetime.now(UTC)

    def signed(number: int, extension: x509.ExtensionType) -> bytes:
        made = x509.CertificateBuilder(
            names[0], names[number], keys[number].public_key(), number + 1, now - timedelta(1), now + timedelta(1)
        )
        return (
            made.add_extension(extension, critical=False).sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )

    secret = keys[1].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    files = folder / "authority.pem", folder / "server.pem"
    files[0].write_bytes(signed(0, x509.BasicConstraints(ca=True, path_length=None)))
    files[1].write_bytes(secret + signed(1, x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])))
    return files
