"""The certificates of a site's TLS connections: the authorities that vouch for it, and what proves to it who we are."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crawlspace.errors import SettingError
from crawlspace.text import printable, quoted

KEYS = ("ca_file", "client_certificate", "client_key")
"""In CRAWLSPACE_SITES."""


@dataclass(frozen=True, slots=True)
class SiteTls:
    """Files in PEM."""

    where: str
    ca_file: Path | None = None
    """Certificates of authorities, in place of those of the system."""
    certificate: Path | None = None
    """Our own with those that vouch for it, and its key where that has no file of its own."""
    key: Path | None = None

    @property
    def key_file(self) -> Path | None:
        return self.key or self.certificate

    def context(self, *, verify: bool = True) -> ssl.SSLContext:
        """Return what a connection is made with. Raises SettingError for files that cannot be used."""
        authorities = self._readable("ca_file", self.ca_file)
        try:
            context = ssl.create_default_context(cafile=authorities)
        except ssl.SSLError as error:
            raise SettingError(
                f"{self.where}['ca_file'] is {quoted(str(self.ca_file))}, which cannot be used: {printable(error.reason or str(error))};"
                " it must have certificates of authorities, in PEM"
            ) from error
        if not verify and self.ca_file is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.certificate is not None:
            self._readable("client_key", self.key)
            certificate = self._readable("client_certificate", self.certificate)
            assert certificate is not None
            try:
                context.load_cert_chain(certificate, self.key, password=self._encrypted)
            except ssl.SSLError as error:
                named = " and ".join(quoted(str(path)) for path in (self.certificate, self.key) if path is not None)
                raise SettingError(
                    f"{self.where} cannot use {named}: {printable(error.reason or str(error))}; it must be a certificate and its key, in PEM"
                ) from error
        return context

    def contents(self) -> str:
        """Return what proves who we are, to see whether it is another one. Raises SettingError."""
        paths = (("client_certificate", self.certificate), ("client_key", self.key))
        return "".join(
            path.read_text("latin-1") for key, path in paths if self._readable(key, path) is not None and path is not None
        )

    def _readable(self, key: str, path: Path | None) -> Path | None:
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                content = file.read()
        except OSError as error:
            raise SettingError(
                f"{self.where}[{quoted(key)}] is {quoted(str(path))}, which cannot be read: {error.strerror}"
            ) from error
        if b"-----BEGIN " not in content:
            raise SettingError(f"{self.where}[{quoted(key)}] is {quoted(str(path))}, which has nothing in PEM")
        return path

    def _encrypted(self) -> bytes:
        raise SettingError(
            f"{self.where} has a key that is encrypted, in {quoted(str(self.key_file))}: decrypt it into a file that only this user may read"
        )


def read_site_tls(where: str, values: Mapping[object, object]) -> SiteTls | None:
    """Return the certificates of an entry; None where it names none. Raises SettingError."""
    paths = {key: _path(where, key, values.get(key)) for key in KEYS}
    if not any(paths.values()):
        return None
    if paths["client_key"] is not None and paths["client_certificate"] is None:
        raise SettingError(f"{where} has 'client_key' and no 'client_certificate', which it is for")
    return SiteTls(where, paths["ca_file"], paths["client_certificate"], paths["client_key"])


def _path(where: str, key: str, value: object) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, (str, Path)) or not str(value).strip():
        raise SettingError(f"{where}[{quoted(key)}] is {quoted(value)}; it must be the path of a file in PEM")
    return Path(value).expanduser()
