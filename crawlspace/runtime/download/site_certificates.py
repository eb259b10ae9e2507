"""TLS connections with the certificates that CRAWLSPACE_SITES names for a site; all others are Scrapy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from OpenSSL import crypto
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from crawlspace.runtime.download.http_internals import SitePolicy, replace_policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
    from scrapy.crawler import Crawler

    from crawlspace.config.site_tls import SiteTls
    from crawlspace.config.sites import SiteTable

_BEGIN = b"-----BEGIN CERTIFICATE-----"


def use_site_certificates(handler: HTTP11DownloadHandler, crawler: Crawler, sites: SiteTable) -> None:
    """Have connections to sites with certificates of their own made with them. Raises SettingError for files that cannot be used."""
    found = [settings.tls for settings in sites.settings if settings.tls is not None]
    if found:
        policies = {tls: _policy(crawler, tls) for tls in found}
        replace_policy(handler, lambda policy: _BySite(policy, policies, sites))


@implementer(IPolicyForHTTPS)
class _BySite:
    """Twisted's policy: `creatorForNetloc` returns what makes a connection to a host."""

    def __init__(self, others: Any, policies: Mapping[SiteTls, SitePolicy], sites: SiteTable) -> None:
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
