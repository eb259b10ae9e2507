"""Rules as administrators have written them for years, with URLs they let in and keep out."""

from __future__ import annotations

import pytest

from crawlspace.decision import Reason
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace

IN, DOMAIN, PREFIX = Reason.ADMITTED, Reason.DOMAIN, Reason.PREFIX

SITES = "allow domain www.ibm.com\nforbid domain *"
SERVERS = "forbid domain server*.ibm.com"
USERS = "allow domain *.user.ibm.com\nforbid domain *"
SALES = "allow domain sales.ibm.com\nforbid domain *"
SALES_443 = "allow domain sales.ibm.com:443\nforbid domain *"
INTRANET = "forbid domain news.ibm.com\nallow domain *.ibm.com\nallow domain *.lotus.com\nforbid domain *"
PUBLIC = "allow prefix http://sales.ibm.com/public/*\nforbid prefix http://sales.ibm.com/*"
MOUNTS = "forbid http://sales.ibm.com/*fs/*"
MIXED = "forbid prefix http://sales.ibm.com/old/\nforbid domain *\nallow prefix http://sales.ibm.com/\nallow domain *"

URLS = [
    # rules, URL, outcome, line of the deciding rule
    ("", "http://anything.example/at/all", IN, 0),
    (SITES, "http://www.ibm.com/", IN, 1),
    (SITES, "https://www.ibm.com:8443/a?b=c#d", IN, 1),
    (SITES, "http://www2.ibm.com/", DOMAIN, 2),
    (SITES, "http://awww.ibm.com/", DOMAIN, 2),
    (SITES, "http://www.ibm.com.example.net/", DOMAIN, 2),
    (SERVERS, "http://server.ibm.com/", DOMAIN, 1),
    (SERVERS, "http://server12.lab.ibm.com/", DOMAIN, 1),
    (SERVERS, "http://myserver.ibm.com/", IN, 0),
    (SERVERS, "http://server.ibm.community/", IN, 0),
    (USERS, "http://joe.user.ibm.com/", IN, 1),
    (USERS, "http://mary.smith.user.ibm.com/", IN, 1),
    (USERS, "http://joe.user.IBM.com/", DOMAIN, 2),
    (USERS, "http://user.ibm.com/", DOMAIN, 2),
    (SALES, "http://sales.ibm.com/", IN, 1),
    (SALES, "http://sales.ibm.com:9080/", IN, 1),
    (SALES, "https://sales.ibm.com/", IN, 1),
    (SALES, "http://Sales.ibm.com/", DOMAIN, 2),
    (SALES_443, "https://sales.ibm.com/", IN, 1),
    (SALES_443, "http://sales.ibm.com:443/", IN, 1),
    (SALES_443, "http://sales.ibm.com/", DOMAIN, 2),
    (SALES_443, "https://sales.ibm.com:8443/", DOMAIN, 2),
    (INTRANET, "http://www.ibm.com/", IN, 2),
    (INTRANET, "http://w3.lotus.com/", IN, 3),
    (INTRANET, "http://news.ibm.com/", DOMAIN, 1),
    (INTRANET, "http://www.example.com/", DOMAIN, 4),
    (PUBLIC, "http://sales.ibm.com/public/", IN, 1),
    (PUBLIC, "http://sales.ibm.com/public/a/b.html?c=d", IN, 1),
    (PUBLIC, "http://SALES.ibm.com:80/public/a", IN, 1),
    (PUBLIC, "http://sales.ibm.com/public", PREFIX, 2),
    (PUBLIC, "http://sales.ibm.com/Public/a", PREFIX, 2),
    (PUBLIC, "http://sales.ibm.com/public/../private/", PREFIX, 2),
    (PUBLIC, "http://sales.ibm.com/%70ublic/a", IN, 1),
    (PUBLIC, "http://sales.ibm.com/", PREFIX, 2),
    (PUBLIC, "https://sales.ibm.com/private/", IN, 0),
    (PUBLIC, "http://sales.ibm.com:9080/private/", IN, 0),
    (MOUNTS, "http://sales.ibm.com/nfs/", PREFIX, 1),
    (MOUNTS, "http://sales.ibm.com/afs/a/b.html", PREFIX, 1),
    (MOUNTS, "http://sales.ibm.com/a/dfs/b", PREFIX, 1),
    (MOUNTS, "http://sales.ibm.com/fs/", PREFIX, 1),
    (MOUNTS, "http://sales.ibm.com/nfs", IN, 0),
    (MOUNTS, "http://sales.ibm.com/nfss/", IN, 0),
    (MIXED, "http://sales.ibm.com/old/a", DOMAIN, 2),
    ("forbid prefix http://sales.ibm.com", "http://sales.ibm.com/", PREFIX, 1),
    ("forbid prefix http://sales.ibm.com", "http://sales.ibm.community/", IN, 0),
    ("forbid prefix http://sales.ibm.com", "http://sales.ibm.com:9080/", IN, 0),
    ("forbid prefix http://sales.ibm.com*", "http://sales.ibm.community/", PREFIX, 1),
    ("forbid prefix http://*.ibm.com/*.cgi", "http://a.b.ibm.com/x/y.cgi?z", PREFIX, 1),
    ("forbid prefix http://*/private/", "http://h/a/b/private/", PREFIX, 1),
    ("forbid prefix http://*?*print=1", "http://h/a?x=2&print=12", PREFIX, 1),
    ("forbid prefix http://*?*print=1", "http://h/?print=1", PREFIX, 1),
    ("forbid prefix http://*?*print=1", "http://h/print=1", IN, 0),
    ("forbid prefix http://*.pdf", "http://h/a.pdf", IN, 0),
    ("forbid prefix http://*.pdf*", "http://h/a.pdf", PREFIX, 1),
    ("forbid prefix http://h/*id=*", "http://h/a?id=7", PREFIX, 1),
    # start URLs of the documentation
    ("allow domain w3.ibm.com\nforbid domain *", "http://w3.ibm.com/", IN, 1),
    ("allow domain sales.ibm.com:9080\nforbid domain *", "http://sales.ibm.com:9080/", IN, 1),
    ("allow domain 2001:db8:0:1::1\nforbid domain *", "http://[2001:db8:0:1:0:0:0:1]", IN, 1),
    ("allow domain [2001:db8:0:1:0:0:0:1]\nforbid domain *", "http://[2001:DB8:0:1::1]", IN, 1),
    ("allow domain [2001:db8:*]\nforbid domain *", "http://[2001:db8:0:1::1]", IN, 1),
    ("allow domain 9.*\nforbid domain *", "http://9.1.2.3/", IN, 1),
    ("", "www.ibm.com", Reason.MALFORMED, 0),
]

NET = "allow address 9.0.0.0 255.0.0.0\nforbid address 0.0.0.0 0.0.0.0"
NET_V6 = "allow address [2001:db8:0:1:0:0:0:1]\nforbid address :: ::"

ADDRESSES = [
    # rules, address, outcome, line of the deciding rule
    (NET, "9.1.2.3", IN, 1),
    (NET, "9.255.255.255", IN, 1),
    (NET, "::ffff:9.1.2.3", IN, 1),
    (NET, "8.8.8.8", Reason.ADDRESS, 2),
    (NET, "2606:4700::1", IN, 0),
    (NET_V6, "2001:db8:0:1::1", IN, 1),
    (NET_V6, "2001:db8:0:1::2", Reason.ADDRESS, 2),
    (NET_V6, "8.8.8.8", IN, 0),
    ("forbid address 9.0.7.0 255.0.255.0", "9.200.7.1", Reason.ADDRESS, 1),
    ("forbid address 9.0.7.0 255.0.255.0", "9.200.8.1", IN, 0),
]


@pytest.mark.parametrize("rules,url,reason,line", URLS)
def test_urls(rules: str, url: str, reason: Reason, line: int) -> None:
    _, decision = _space(rules).decide(url)
    assert (decision.reason, decision.rule.line if decision.rule else 0) == (reason, line)


@pytest.mark.parametrize("rules,address,reason,line", ADDRESSES)
def test_addresses(rules: str, address: str, reason: Reason, line: int) -> None:
    decision = _space(rules).at_connect("www.example.com", 80, address)
    assert (decision.reason, decision.rule.line if decision.rule else 0) == (reason, line)


def _space(rules: str) -> CrawlSpace:
    return CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), [])
