"""A certificate that nobody vouches for, and one of an authority of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
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


DAY = timedelta(1)


@dataclass
class Authority:
    """An authority that issues certificates: its own is signed by `issuer`, or by itself."""

    name: str
    issuer: Authority | None = None
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def issue(self, file: Path, *, name: str = "127.0.0.1", begins: timedelta = -DAY, ends: timedelta = DAY) -> Path:
        """Write a key with a certificate for an address or host, which is valid between two times from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        host = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
        made = _signed(name, key, self, begins, ends, x509.SubjectAlternativeName([host]))
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
        return file

    def pem(self) -> bytes:
        made = _signed(self.name, self.key, self.issuer or self, -DAY, DAY, x509.BasicConstraints(ca=True, path_length=None))
        return made.public_bytes(serialization.Encoding.PEM)


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: Authority,
    begins: timedelta,
    ends: timedelta,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (issuer.name, name)]
    now = datetime.now(UTC)
    number = x509.random_serial_number()
    made = x509.CertificateBuilder(names[0], names[1], key.public_key(), number, now + begins, now + ends)
    return made.add_extension(extension, critical=False).sign(issuer.key, hashes.SHA256())


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
