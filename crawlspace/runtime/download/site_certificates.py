"""TLS connections with the certificates that CRAWLSPACE_SITES names for a site, and what is wrong with a certificate that is refused.

All other TLS connections are Scrapy's. Twisted checks certificates as this module does, but does not report what it has found.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import ref

from cryptography import x509
from OpenSSL import SSL, crypto
from service_identity import VerificationError
from service_identity.hazmat import DNS_ID, IPAddress_ID, verify_service_identity
from service_identity.pyopenssl import extract_patterns
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.python.failure import Failure
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from crawlspace.runtime.download import causes
from crawlspace.runtime.download.causes import Cause
from crawlspace.runtime.download.errors import CertificateRefused
from crawlspace.runtime.download.http_internals import SitePolicy, replace_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
    from scrapy.crawler import Crawler

    from crawlspace.config.site_tls import SiteTls
    from crawlspace.config.sites import SiteTable

_BEGIN = b"-----BEGIN CERTIFICATE-----"


def use_site_certificates(handler: HTTP11DownloadHandler, crawler: Crawler, sites: SiteTable) -> None:
    """Have connections to sites with certificates of their own made with them. Raises SettingError for files that cannot be used."""
    found = [settings.tls for settings in sites.settings if settings.tls is not None]
    verifies = crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")
    if verifies:
        replace_policy(handler, _Verified)
    if found:
        policies: dict[SiteTls, Any] = {tls: _policy(crawler, tls) for tls in found}
        for tls, policy in policies.items():
            if verifies or policy.trusts is not None:
                policies[tls] = _Verified(policy)
        replace_policy(handler, lambda policy: _BySite(policy, policies, sites))


@implementer(IPolicyForHTTPS)
class _BySite:
    """Twisted's policy: `creatorForNetloc` returns what makes a connection to a host."""

    def __init__(self, others: Any, policies: Mapping[SiteTls, Any], sites: SiteTable) -> None:
        self._others = others
        self._policies = policies
        self._sites = sites

    def creatorForNetloc(self, hostname: bytes, port: int) -> Any:  # noqa: N802
        tls = self._sites.of(hostname.decode("ascii"), port).tls
        return (self._others if tls is None else self._policies[tls]).creatorForNetloc(hostname, port)


def _policy(crawler: Crawler, tls: SiteTls) -> SitePolicy:
    tls.context()
    policy = SitePolicy.from_crawler(crawler)
    if tls.ca_file is not None:
        policy.trusts = trustRootFromCertificates([Certificate.loadPEM(part) for part in _certificates(tls.ca_file.read_bytes())])
    if tls.certificate is not None and tls.key_file is not None:
        own, *others = _certificates(tls.certificate.read_bytes())
        policy.own = {
            "privateKey": crypto.load_privatekey(crypto.FILETYPE_PEM, tls.key_file.read_bytes()),
            "certificate": crypto.load_certificate(crypto.FILETYPE_PEM, own),
            "extraCertChain": [crypto.load_certificate(crypto.FILETYPE_PEM, other) for other in others],
        }
    return policy


def _certificates(content: bytes) -> list[bytes]:
    return [_BEGIN + part for part in content.split(_BEGIN)[1:]]


@implementer(IPolicyForHTTPS)
class _Verified:
    """A policy whose connections fail with CertificateRefused where a certificate is not accepted."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def creatorForNetloc(self, hostname: bytes, port: int) -> Any:  # noqa: N802
        return _VerifiedConnections(self._policy.creatorForNetloc(hostname, port), hostname.decode("ascii"))


@implementer(IOpenSSLClientConnectionCreator)
class _VerifiedConnections:
    """Makes the connections to one host as another one does, and has their certificates verified by `_verification`."""

    def __init__(self, connections: Any, host: str) -> None:
        self._connections = connections
        self._host = host

    def clientConnectionForTLS(self, tlsProtocol: Any) -> SSL.Connection:  # noqa: N802, N803 - as the interface has it
        connection: SSL.Connection = self._connections.clientConnectionForTLS(tlsProtocol)
        connection.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, _verification(tlsProtocol, self._host))
        return connection


def _verification(protocol: Any, host: str) -> Callable[[SSL.Connection, crypto.X509, int, int, int], bool]:
    """Return the check of the certificates of a connection: OpenSSL's of each, and that of the name, for that of the site.

    An exception in it would be lost in OpenSSL. So whatever cannot be checked is refused.
    """
    failing = ref(protocol)  # the connection has this function, and the protocol has the connection
    named = IPAddress_ID(host) if isIPAddress(host) or isIPv6Address(host) else DNS_ID(host)

    def verify(_: SSL.Connection, certificate: crypto.X509, code: int, depth: int, is_valid: int) -> bool:
        cause, why = (None, "") if is_valid else (_CAUSES.get(code, Cause.OTHER_CERTIFICATE), f"OpenSSL's code {code}")
        if cause is None and depth == 0:
            try:
                verify_service_identity(extract_patterns(certificate), [named], [])
            except VerificationError:
                cause = Cause.WRONG_NAME
            except Exception as error:  # noqa: BLE001 - see above
                cause, why = Cause.OTHER_CERTIFICATE, str(error)
        if cause is None:
            return True
        refused = CertificateRefused(cause, host=host, certificate=_facts(certificate, depth), why=why)
        if (one := failing()) is not None:
            one.failVerification(Failure(refused))
        return False

    return verify


_CAUSES = {
    SSL.X509VerificationCodes.ERR_CERT_HAS_EXPIRED: Cause.EXPIRED,
    SSL.X509VerificationCodes.ERR_CERT_NOT_YET_VALID: Cause.NOT_YET_VALID,
    SSL.X509VerificationCodes.ERR_DEPTH_ZERO_SELF_SIGNED_CERT: Cause.SELF_SIGNED,
    SSL.X509VerificationCodes.ERR_SELF_SIGNED_CERT_IN_CHAIN: Cause.UNKNOWN_ISSUER,
    SSL.X509VerificationCodes.ERR_UNABLE_TO_GET_ISSUER_CERT: Cause.UNKNOWN_ISSUER,
    SSL.X509VerificationCodes.ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY: Cause.UNKNOWN_ISSUER,
    SSL.X509VerificationCodes.ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: Cause.UNKNOWN_ISSUER,
    SSL.X509VerificationCodes.ERR_CERT_UNTRUSTED: Cause.UNKNOWN_ISSUER,
    SSL.X509VerificationCodes.ERR_CERT_REVOKED: Cause.REVOKED,
}


def _facts(certificate: crypto.X509, depth: int) -> causes.Certificate:
    """Return what a certificate says, as far as it can be read."""
    with suppress(Exception):
        found = certificate.to_cryptography()
        names: list[str] = []
        with suppress(x509.ExtensionNotFound):
            alternative = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names += alternative.get_values_for_type(x509.DNSName)
            names += map(str, alternative.get_values_for_type(x509.IPAddress))
        return causes.Certificate(
            names,
            _name(found.subject),
            _name(found.issuer),
            found.not_valid_before_utc.timestamp(),
            found.not_valid_after_utc.timestamp(),
            depth,
        )
    return causes.Certificate(depth=depth)


def _name(name: x509.Name) -> str:
    """Return the common name, or else the whole of it."""
    common = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(common[0].value) if common else name.rfc4514_string()
