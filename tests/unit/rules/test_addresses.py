"""Private addresses: IPv4 addresses in forms of IPv6, hosts that patterns match, and requests that are for no page."""

from __future__ import annotations

import ipaddress
import subprocess
import sys

import pytest

from crawlspace.decision import Reason
from crawlspace.lint.crawl_rules import lint_rules
from crawlspace.rules.address import Reach, address_value, embedded, reach
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import parse
from tests.notifications import LONGEST_WAIT_S

# an address, the IPv4 addresses it leads to
FORMS = [
    ("10.1.2.3", []),
    ("::ffff:10.1.2.3", []),  # is read as 10.1.2.3
    ("::10.1.2.3", ["10.1.2.3"]),
    ("::ffff:0:10.1.2.3", ["10.1.2.3"]),
    ("64:ff9b::a01:203", ["10.1.2.3"]),
    ("64:ff9b:1::a01:203", ["10.1.2.3"]),
    ("64:ff9b:1:a01:2:300::", ["10.1.2.3", "1.2.3.0", "2.3.0.0"]),
    ("64:ff9b:1:a01:2:300:dead:beef", ["222.173.190.239", "10.1.2.3", "1.2.3.0", "2.3.0.222"]),
    ("64:ff9b:1:ff0a:1:203::", ["255.10.1.2", "10.1.2.3", "1.2.3.0"]),
    ("64:ff9b:1:ffff:a:102:300:0", ["3.0.0.0", "255.255.10.1", "255.10.1.2", "10.1.2.3"]),
    ("2002:a01:203::1", ["10.1.2.3"]),
    ("2001:0:a01:203::", ["255.255.255.255", "10.1.2.3"]),
    ("2001:0:808:808::f5fe:fdfc", ["10.1.2.3", "8.8.8.8"]),
    ("2606:4700::5efe:10.1.2.3", ["10.1.2.3"]),
    ("fe80::200:5efe:10.1.2.3", ["10.1.2.3"]),
    ("fe80::5eff:10.1.2.3", []),
    ("2606:4700::a01:203", []),
    ("::1", []),
    ("0.0.0.0", ["127.0.0.1"]),
    ("::", ["0.0.0.1", "127.0.0.1"]),
    ("64:ff9b::", ["0.0.0.0", "127.0.0.1"]),
]


@pytest.mark.parametrize(("address", "inner"), FORMS)
def test_where_an_address_leads(address: str, inner: list[str]) -> None:
    assert [str(ipaddress.IPv4Address(one.value)) for one in embedded(*address_value(address))] == inner


DISGUISED = [
    "10.1.2.3",
    "::ffff:10.1.2.3",
    *(address for address, inner in FORMS if "10.1.2.3" in inner),
]


@pytest.mark.parametrize("address", DISGUISED)
@pytest.mark.parametrize(
    "rules",
    [
        "forbid address 10.0.0.0/8",
        "allow address ::/0\nforbid address 10.0.0.0/8",
        "allow address 8.0.0.0/8\nforbid address 0.0.0.0/0",
    ],
)
def test_a_rule_forbids_all_forms(rules: str, address: str) -> None:
    for host in ("start.example", "10.1.2.3"):
        assert decided(rules, host, address) in (Reason.ADDRESS, Reason.PRIVATE_ADDRESS)
    assert decided(rules, "start.example", address) is Reason.ADDRESS


# rules, address -> whether a host that nobody names may be there
ALLOWED = [
    ("allow address 10.0.0.0/8", "10.1.2.3", True),
    ("allow address 10.0.0.0/8", "::ffff:10.1.2.3", True),
    ("allow address 10.0.0.0/8", "64:ff9b::a01:203", False),
    ("allow address 10.0.0.0/8", "2002:a01:203::1", False),
    ("allow address 10.0.0.0/8", "2606:4700::5efe:10.1.2.3", False),
    ("allow address ::/0", "64:ff9b::a01:203", False),
    ("allow address ::/0", "64:ff9b::a9fe:a9fe", False),
    ("allow address ::/0", "64:ff9b::808:808", True),
    ("allow address 64:ff9b::/96", "64:ff9b::a01:203", True),
    ("allow address 64:ff9b:1::/48", "64:ff9b:1::a01:203", True),
    ("allow address 2002:a01:203::/48", "2002:a01:203::1", True),
    ("allow address ::/0\nallow address 10.0.0.0/8", "64:ff9b::a01:203", True),
    ("allow address ::/0\nallow address 0.0.0.0/0", "64:ff9b::a9fe:a9fe", True),
    ("allow address 127.0.0.0/8", "0.0.0.0", False),
    ("allow address 127.0.0.0/8", "::", False),
    ("allow address 0.0.0.0", "0.0.0.0", True),
]


@pytest.mark.parametrize(("rules", "address", "open_"), ALLOWED)
def test_a_rule_that_allows_an_address_opens_no_more(rules: str, address: str, *, open_: bool) -> None:
    assert (decided(rules, "www.example", address) is Reason.ADMITTED) is open_


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "127.0.0.1", "::127.0.0.1"])
def test_the_unspecified_address_is_loopback(address: str) -> None:
    assert decided("forbid address 127.0.0.0/8", "start.example", address) is Reason.ADDRESS
    assert reach(*address_value(address)) is Reach.INTERNAL
    if ":" in address and not address.endswith(".1"):
        assert decided("forbid address ::1", "start.example", address) is Reason.ADDRESS


LOOPBACK = [
    # rules, address -> whether it is forbidden to a host that may have private addresses
    ("forbid address 127.0.0.0/8", "::1", True),
    ("forbid address 127.0.0.1", "::1", True),
    ("forbid address 0.0.0.0/0", "::1", True),
    ("forbid address 127.0.0.2", "::1", False),
    ("allow address 127.0.0.1\nforbid address 127.0.0.0/8", "::1", False),
    ("allow address ::/0\nforbid address 127.0.0.0/8", "::1", True),
    ("allow address ::1\nforbid address 127.0.0.0/8", "::1", False),
    ("forbid address 127.0.0.0/8\nallow address ::1", "::1", False),
    ("forbid address ::1", "127.0.0.1", True),
    ("forbid address ::1", "127.9.9.9", True),
    ("forbid address ::1", "::ffff:127.0.0.1", True),
    ("forbid address ::1", "::127.0.0.1", True),
    ("forbid address ::1", "64:ff9b::7f00:1", True),
    ("forbid address ::1", "0.0.0.0", True),
    ("forbid address ::1", "64:ff9b::", True),
    ("forbid address ::/127", "127.0.0.1", True),
    ("forbid address ::/0", "127.0.0.1", False),
    ("forbid address ::1", "10.1.2.3", False),
    ("forbid address ::1", "126.255.255.255", False),
    ("forbid address ::1", "128.0.0.1", False),
    ("forbid address ::1", "::2", False),
    ("allow address 0.0.0.0/0\nforbid address ::1", "127.0.0.1", True),
    ("allow address 127.0.0.0/8\nforbid address ::1", "127.0.0.1", False),
    ("allow address 127.0.0.2\nforbid address ::1", "127.0.0.2", False),
    ("allow address 127.0.0.2\nforbid address ::1", "127.0.0.1", True),
]


@pytest.mark.parametrize(("rules", "address", "forbidden"), LOOPBACK)
def test_a_rule_that_forbids_loopback_forbids_that_of_the_other_family(rules: str, address: str, *, forbidden: bool) -> None:
    assert decided(rules, "start.example", address) is (Reason.ADDRESS if forbidden else Reason.ADMITTED)


METADATA = [
    "169.254.169.254",
    "::169.254.169.254",
    "::ffff:0:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "2002:a9fe:a9fe::",
    "2001:0:808:808::5601:5601",
    "2001:0:a9fe:a9fe::f5fe:fdfc",
    "2606:4700::5efe:a9fe:a9fe",
    "fd00:c1::a9fe:a9fe",
    "fd00:ec2::254",
    "2002:6464:64c8::",
]


@pytest.mark.parametrize("address", METADATA)
def test_metadata_services_in_disguise(address: str) -> None:
    assert reach(*address_value(address)) is Reach.METADATA
    assert decided("allow domain start.example", "start.example", address) is Reason.PRIVATE_ADDRESS


@pytest.mark.parametrize(
    "address", ["64:ff9b::808:808", "2002:808:808::1", "::8.8.8.8", "2606:4700::5efe:808:808", "2606:4700::1"]
)
def test_public_addresses_stay_public(address: str) -> None:
    assert reach(*address_value(address)) is Reach.PUBLIC


def decided(rules: str, host: str, address: str) -> Reason:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), [parse("http://start.example/")])
    return space.at_connect(host, 80, address).reason


# --- patterns that match the hosts of anybody -----------------------------------------------------------------------


# an allow rule, a host that it matches, whether that may be at a private address
RULES = [
    ("allow domain *", "www.example.com", False),
    ("allow domain *.*", "www.example.com", False),
    ("allow domain *.com", "www.example.com", False),
    ("allow domain *.co.uk", "www.example.co.uk", False),
    ("allow domain *.github.io", "evil.github.io", False),
    ("allow domain *.ck", "evil.co.ck", False),
    ("allow domain *e*", "www.example.com", False),
    ("allow domain *.com:80", "www.example.com", False),
    ("allow domain www.example.*", "www.example.evil.com", False),
    ("allow domain *example.com", "evilexample.com", False),
    ("allow domain 10.1.*", "10.1.evil.com", False),
    ("allow domain *.1", "10.0.0.1", False),
    ("allow prefix http://*.*/", "www.example.com", False),
    ("allow prefix http://*.com/", "www.example.com", False),
    ("allow prefix http://www.example.com*", "www.example.com.evil.net", False),
    ("allow domain *.example.com", "www.example.com", True),
    ("allow domain *.Example.com:80", "www.example.com", True),
    ("allow domain *.example.co.uk", "www.example.co.uk", True),
    ("allow domain *.me.github.io", "docs.me.github.io", True),
    ("allow domain www.example.com", "www.example.com", True),
    ("allow domain w*.example.com", "www.example.com", True),
    ("allow domain *.corp", "wiki.corp", True),
    ("allow domain wiki", "wiki", True),
    ("allow domain 10.1.*", "10.1.2.3", True),
    ("allow domain [fd00::*]", "[fd00::1]", True),
    ("allow prefix http://*.example.com/docs/", "www.example.com", True),
    ("allow domain *.com\nallow domain *.example.com", "www.example.com", True),
]


@pytest.mark.parametrize(("rules", "host", "named"), RULES)
def test_private_addresses(rules: str, host: str, *, named: bool) -> None:
    parsed = parse_crawl_rules(rules, file="crawl.rules")
    space = CrawlSpace(parsed, Limits(), [])
    assert space.at_connect(host, 80, "10.0.0.1").reason is (Reason.ADMITTED if named else Reason.PRIVATE_ADDRESS)
    warned = [one.line for one in lint_rules(parsed, Limits()) if one.code == "hosts-of-anybody"]
    quiet = named or rules in {"allow domain *", "allow domain 10.1.*"}
    assert warned == ([] if quiet and "\n" not in rules else [1])


def test_the_list_is_read_only_for_patterns() -> None:
    """It costs half a second."""
    code = (
        "import sys\n"
        "from crawlspace.rules.crawl_rules import parse_crawl_rules\n"
        "from crawlspace.rules.limits import Limits\n"
        "from crawlspace.rules.space import CrawlSpace\n"
        "space = CrawlSpace(parse_crawl_rules('allow domain wiki\\nallow domain *.corp\\n', file=''), Limits(), [])\n"
        "for host in ('wiki', 'elsewhere'): space.at_connect(host, 80, '10.0.0.1')\n"
        "space.at_connect('a.corp', 80, '8.8.8.8')\n"
        "assert 'tldextract' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LONGEST_WAIT_S)


OTHERS = "forbid domain *"
START = "http://start.example/docs/"
MISSING = [
    # rules, limits, link, whether nothing but a domain rule keeps it out, or that none allows its host
    (OTHERS, Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("", Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("allow domain *", Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("allow domain gone.example", Limits(follow_offsite_links=False), "http://gone.example/", False),
    ("allow domain *.example", Limits(follow_offsite_links=False), "http://gone.example/", False),
    ("allow domain kept.example\nforbid domain *", Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("", Limits(follow_offsite_links=False), "http://gone.example/a.png", False),
    ("forbid prefix http://gone.example/x", Limits(follow_offsite_links=False), "http://gone.example/x", False),
    (OTHERS, Limits(index_entire_site=True), "http://gone.example/docs/", True),
    ("", Limits(index_entire_site=True), "http://gone.example/docs/", True),
    ("", Limits(index_entire_site=True, follow_offsite_links=False), "http://gone.example/docs/", True),
    ("", Limits(index_entire_site=True), "http://start.example/news/", False),
    (OTHERS, Limits(index_entire_site=True), "http://start.example/news/", False),
    (OTHERS, Limits(index_entire_site=True), "http://start.example/docs/", True),
    (OTHERS, Limits(follow_query_strings=False), "http://gone.example/?q", False),
]


@pytest.mark.parametrize("rules,limits,href,expected", MISSING)
def test_refused_because_no_domain_rule_allows_the_host(rules: str, limits: Limits, href: str, expected: bool) -> None:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), limits, [parse(START)])
    url, decision = space.decide(href)
    assert url is not None
    assert space.is_refused_by_domain_only(url, decision) is expected


DOCS = "http://a.example/docs/"
B = "http://b.example/robots.txt"
OPEN = Limits()

HOSTS = [
    # rules, limits, where to, whether it may be asked
    ("", OPEN, B, True),
    ("", OPEN, "https://b.example:8443/x/robots.txt?y", True),
    # limits of pages don't count
    ("", Limits(exclude_extensions=frozenset({"txt"}), max_path_depth=0), "http://b.example/x/robots.txt", True),
    ("", Limits(follow_query_strings=False, max_url_length=10), "http://b.example/robots?x=1", True),
    # limits of hosts do
    ("", Limits(schemes=frozenset({"https"})), B, False),
    ("", Limits(schemes=frozenset({"https"})), "https://b.example/robots.txt", True),
    ("", Limits(follow_offsite_links=False), B, False),
    ("", Limits(follow_offsite_links=False), "http://a.example:81/robots.txt", True),
    ("", Limits(index_entire_site=True), B, False),
    ("", Limits(index_entire_site=True), "http://a.example/robots.txt", True),
    # domain rules
    ("forbid domain b.example\n", OPEN, B, False),
    ("allow domain a.example\nforbid domain *\n", OPEN, B, False),
    ("allow domain *.example\nforbid domain *\n", OPEN, B, True),
    ("forbid domain b.example:81\n", OPEN, B, True),
    ("forbid domain b.example:81\n", OPEN, "http://b.example:81/", False),
    # prefix rules, where they are about all of a host
    ("forbid prefix http://b.example/\n", OPEN, B, False),
    ("forbid prefix http://b.example/\n", OPEN, "https://b.example/", True),
    ("forbid prefix http://b.example/robots\n", OPEN, B, True),
    ("forbid prefix http://b.example/*.txt\n", OPEN, B, True),
    ("allow prefix http://b.example/docs/\nforbid prefix http://b.example/\n", OPEN, B, True),
    ("allow prefix http://a.example/docs/\nforbid prefix http://*\n", OPEN, B, False),
    ("allow prefix http://*.example/\nforbid prefix http://*\n", OPEN, B, True),
    ("allow prefix http://b.example/docs/\nforbid prefix http://*\nforbid domain b.*\n", OPEN, B, False),
    # address rules hold when the connection is made
    ("forbid address 0.0.0.0/0\n", OPEN, B, True),
]


@pytest.mark.parametrize(("rules", "limits", "url", "may"), HOSTS)
def test_hosts(rules: str, limits: Limits, url: str, may: bool) -> None:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), limits, [parse(DOCS)])
    assert space.may_reach(parse(url)) is may
