"""The options of TLS connections, with the certificates that CRAWLSPACE_SITES names for a site, and what is wrong with one refused."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import time

import pycurl
from cryptography import x509
from scrapy.settings import BaseSettings

from crawlspace.config.site_tls import SiteTls
from crawlspace.errors import SettingError
from crawlspace.runtime.http.causes import NO_CERTIFICATE, Cause, Certificate
from crawlspace.text import quoted

Options = list[tuple[int, object]]
_VERSIONS = {
    "TLSv1.0": (pycurl.SSLVERSION_TLSv1_0, pycurl.SSLVERSION_MAX_TLSv1_0),
    "TLSv1.1": (pycurl.SSLVERSION_TLSv1_1, pycurl.SSLVERSION_MAX_TLSv1_1),
    "TLSv1.2": (pycurl.SSLVERSION_TLSv1_2, pycurl.SSLVERSION_MAX_TLSv1_2),
    "TLSv1.3": (pycurl.SSLVERSION_TLSv1_3, pycurl.SSLVERSION_MAX_TLSv1_3),
}
_OLD = frozenset({"TLSv1.0", "TLSv1.1"})
"""OpenSSL speaks these at its lowest level of security only."""


class TlsOptions:
    """The options of TLS connections."""

    def __init__(
        self,
        *,
        verifies: bool = True,
        least: str | None = None,
        most: str | None = None,
        ciphers: str = "DEFAULT",
        are_logged: bool = False,
    ) -> None:
        """`least` and `most` are versions, as "TLSv1.2"; None: as libcurl has it. `are_logged`: what a handshake agrees on."""
        self.verifies, self.are_logged = verifies, are_logged
        self._version = (_VERSIONS[least][0] if least else pycurl.SSLVERSION_DEFAULT) | (_VERSIONS[most][1] if most else 0)
        self._ciphers = f"{ciphers}:@SECLEVEL=0" if least in _OLD and "@SECLEVEL" not in ciphers else ciphers
        self._authorities = [*_authorities()] if verifies else []

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> TlsOptions:
        """Return the options by Scrapy's settings. Raises SettingError for an invalid value."""
        least, most = (_version(settings, name) for name in ("DOWNLOAD_TLS_MIN_VERSION", "DOWNLOAD_TLS_MAX_VERSION"))
        method = str(settings["DOWNLOADER_CLIENT_TLS_METHOD"] or "TLS")
        if least is None and most is None and method in _VERSIONS:
            least = most = method
        return cls(
            verifies=settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"),
            least=least,
            most=most,
            ciphers=str(settings["DOWNLOADER_CLIENT_TLS_CIPHERS"] or "DEFAULT"),
            are_logged=settings.getbool("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING"),
        )

    def of_site(self, tls: SiteTls | None) -> Options:
        """Return the options of connections to a site; `tls`: what CRAWLSPACE_SITES has for it."""
        options: Options = [(pycurl.SSLVERSION, self._version), (pycurl.OPT_CERTINFO, 1)]
        if self._ciphers != "DEFAULT":
            options.append((pycurl.SSL_CIPHER_LIST, self._ciphers))
        if tls is not None and tls.ca_file is not None:
            options += [(pycurl.CAINFO, str(tls.ca_file)), (pycurl.CAPATH, None)]
        elif self.verifies:
            options += self._authorities
        else:
            options += [(pycurl.SSL_VERIFYPEER, 0), (pycurl.SSL_VERIFYHOST, 0)]
        if tls is not None and tls.certificate is not None:
            options += [(pycurl.SSLCERT, str(tls.certificate)), (pycurl.SSLKEY, str(tls.key_file))]
        return options

    def of_proxy(self, tls: SiteTls | None) -> Options:
        """Return the options of connections to a proxy that speaks TLS."""
        options: Options = [(pycurl.PROXY_SSLVERSION, self._version)]
        if tls is not None and tls.ca_file is not None:
            options += [(pycurl.PROXY_CAINFO, str(tls.ca_file)), (pycurl.PROXY_CAPATH, None)]
        elif self.verifies:
            options += [(_OF_PROXY.get(option, option), value) for option, value in self._authorities]
        else:
            options += [(pycurl.PROXY_SSL_VERIFYPEER, 0), (pycurl.PROXY_SSL_VERIFYHOST, 0)]
        if tls is not None and tls.certificate is not None:
            options += [(pycurl.PROXY_SSLCERT, str(tls.certificate)), (pycurl.PROXY_SSLKEY, str(tls.key_file))]
        return options


_OF_PROXY = {
    pycurl.CAINFO: pycurl.PROXY_CAINFO,
    pycurl.CAPATH: pycurl.PROXY_CAPATH,
    pycurl.SSL_OPTIONS: pycurl.PROXY_SSL_OPTIONS,
}


def _version(settings: BaseSettings, name: str) -> str | None:
    value = settings[name]
    if value is not None and value not in _VERSIONS:
        raise SettingError(f"{name} is {quoted(value)}; it must be one of {', '.join(_VERSIONS)}")
    return None if value is None else str(value)


def _authorities() -> Iterator[tuple[int, object]]:
    """Yield the options for the authorities of the system: those that Python trusts, since libcurl's own idea is that of its builders."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath:
        yield pycurl.CAINFO, paths.cafile
        yield pycurl.CAPATH, paths.capath
        return
    usual = next((path for path in _USUAL_FILES if Path(path).is_file()), None)
    if usual is not None:
        yield pycurl.CAINFO, usual
    else:  # as on Windows and macOS
        yield pycurl.SSL_OPTIONS, pycurl.SSLOPT_NATIVE_CA


_USUAL_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Usual paths of the file of authorities."""


def refused_certificate(result: int, chain: Sequence[str], message: str) -> tuple[Cause, Certificate]:
    """Return why a certificate is refused, and which one of the chain that the server has sent.

    `result` is what OpenSSL's verification has (X509_V_ERR_ of x509_vfy.h). libcurl compares the name first, and has no result then.
    """
    certificates = [_facts(pem, depth) for depth, pem in enumerate(chain)]
    own = certificates[0] if certificates else NO_CERTIFICATE
    cause = _of_name(certificates) if result in _NO_RESULT and "name" in message else _CAUSES.get(result)
    if cause is None:
        return Cause.OTHER_CERTIFICATE, own
    if cause is Cause.EXPIRED:
        return cause, max(certificates, key=lambda one: -(one.ends or 0), default=own)
    if cause is Cause.NOT_YET_VALID:
        return cause, max(certificates, key=lambda one: one.begins or 0, default=own)
    if cause is Cause.UNKNOWN_ISSUER and result != _LEAF:
        return cause, certificates[-1] if certificates else own
    return cause, own


def _of_name(chain: Sequence[Certificate]) -> Cause:
    """Return why a certificate is refused whose name does not fit: that is not all that may be wrong with it."""
    if len(chain) == 1 and chain[0].subject and chain[0].subject == chain[0].issuer:
        return Cause.SELF_SIGNED
    now = time()
    if any(one.ends is not None and one.ends < now for one in chain):
        return Cause.EXPIRED
    if any(one.begins is not None and one.begins > now for one in chain):
        return Cause.NOT_YET_VALID
    return Cause.WRONG_NAME


_NO_RESULT = frozenset({0, 1})
_LEAF = 21
_CAUSES = {
    2: Cause.UNKNOWN_ISSUER,
    9: Cause.NOT_YET_VALID,
    10: Cause.EXPIRED,
    18: Cause.SELF_SIGNED,
    19: Cause.UNKNOWN_ISSUER,
    20: Cause.UNKNOWN_ISSUER,
    _LEAF: Cause.UNKNOWN_ISSUER,
    23: Cause.REVOKED,
    27: Cause.UNKNOWN_ISSUER,
    66: Cause.WEAK_KEY,
    67: Cause.WEAK_KEY,
    68: Cause.WEAK_KEY,
}


def _facts(pem: str, depth: int) -> Certificate:
    """Return what a certificate says, as far as it can be read."""
    with suppress(Exception):
        found = x509.load_pem_x509_certificate(pem.encode("ascii"))
        names: list[str] = []
        with suppress(x509.ExtensionNotFound):
            alternative = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names += alternative.get_values_for_type(x509.DNSName)
            names += map(str, alternative.get_values_for_type(x509.IPAddress))
        return Certificate(
            names,
            _name(found.subject),
            _name(found.issuer),
            found.not_valid_before_utc.timestamp(),
            found.not_valid_after_utc.timestamp(),
            depth,
        )
    return Certificate(depth=depth)


def _name(name: x509.Name) -> str:
    """Return the common name, or else the whole of it."""
    common = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(common[0].value) if common else name.rfc4514_string()
