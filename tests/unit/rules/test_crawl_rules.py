"""The grammar of crawl.rules, its mistakes, and rules of administrators with URLs that they admit and refuse."""

from __future__ import annotations

import ipaddress

import pytest

from crawlspace.decision import Reason
from crawlspace.errors import RuleFileError
from crawlspace.rules.crawl_rules import CrawlRules, DomainRule, PrefixRule, Rule, parse_crawl_rules, parse_global_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace

READ = [
    # line, what it means
    ("allow domain www.ibm.com", "allow domain www.ibm.com"),
    ("ALLOW Domain WWW.ibm.com", "allow domain WWW.ibm.com"),
    ("  forbid\tdomain\t*  ", "forbid domain *"),
    ("forbid domain server*.ibm.com", "forbid domain server*.ibm.com"),
    ("forbid domain **.ibm.com", "forbid domain *.ibm.com"),
    ("allow domain sales.ibm.com:443", "allow domain sales.ibm.com:443"),
    ("allow domain *:8080", "allow domain *:8080"),
    ("allow domain 9.1.2.3", "allow domain 9.1.2.3"),
    ("allow domain bücher.example", "allow domain xn--bcher-kva.example"),
    ("allow domain *.bücher.example", "allow domain *.xn--bcher-kva.example"),
    ("allow domain Bücher.EXAMPLE", "allow domain xn--bcher-kva.example"),
    ("allow domain www.ibm.com.", "allow domain www.ibm.com"),
    ("allow domain *.ibm.com.:80", "allow domain *.ibm.com:80"),
    ("allow domain 9.1.2.3.", "allow domain 9.1.2.3"),
    ("allow domain 2001:DB8:0:0::1", "allow domain [2001:db8::1]"),
    ("allow domain [2001:db8:0:1:0:0:0:1]:8080", "allow domain [2001:db8:0:1::1]:8080"),
    ("allow domain [2001:DB8:*]", "allow domain [2001:db8:*]"),
    ("allow prefix http://sales.ibm.com/public/*", "allow prefix http://sales.ibm.com/public/"),
    ("allow prefix http://sales.ibm.com/public/", "allow prefix http://sales.ibm.com/public/"),
    ("forbid http://sales.ibm.com/*fs/*", "forbid prefix http://sales.ibm.com/*fs/"),
    ("forbid HTTPS://Sales.IBM.com:443/A", "forbid prefix https://sales.ibm.com/A"),
    ("forbid prefix http://sales.ibm.com", "forbid prefix http://sales.ibm.com/"),
    ("forbid prefix http://sales.ibm.com*", "forbid prefix http://sales.ibm.com"),
    ("forbid prefix http://sales.ibm.com:9080", "forbid prefix http://sales.ibm.com:9080/"),
    ("forbid prefix http://sales.ibm.com?id=", "forbid prefix http://sales.ibm.com/?id="),
    ("forbid prefix http://h/?", "forbid prefix http://h/?"),
    ("forbid prefix http://*.IBM.com/a", "forbid prefix http://*.ibm.com/a"),
    ("forbid prefix http://*.ibm.com:80/a", "forbid prefix http://*.ibm.com/a"),
    ("forbid prefix http://*.ibm.com./a", "forbid prefix http://*.ibm.com/a"),
    ("forbid prefix http://*.ibm.com.:80/a", "forbid prefix http://*.ibm.com/a"),
    ("forbid prefix http://www.ibm.com./a", "forbid prefix http://www.ibm.com/a"),
    ("forbid prefix http://0x7f.1/a", "forbid prefix http://127.0.0.1/a"),
    ("forbid prefix http://h:08080/a", "forbid prefix http://h:8080/a"),
    ("forbid prefix http://*", "forbid prefix http://"),
    ("forbid prefix http://*/a", "forbid prefix http://*/a"),
    ("forbid prefix http://*?*print=1", "forbid prefix http://*?*print=1"),
    ("forbid prefix http://*.ibm.com*?ä", "forbid prefix http://*.ibm.com*?%C3%A4"),
    ("forbid prefix http://h:*/a", "forbid prefix http://h:*/a"),
    ("forbid prefix http://[2001:DB8:0::1]/a", "forbid prefix http://[2001:db8::1]/a"),
    ("forbid prefix http://bücher.example/ä%7e%c3", "forbid prefix http://xn--bcher-kva.example/%C3%A4~%C3"),
    ("forbid prefix http://h/.", "forbid prefix http://h/."),
    ("forbid prefix http://h/*/.*", "forbid prefix http://h/*/."),
    ("forbid prefix http://h/%2egit", "forbid prefix http://h/.git"),
    ("forbid prefix http://h/a?b=*&c='", "forbid prefix http://h/a?b=*&c=%27"),
    ("forbid prefix http://h\\a", "forbid prefix http://h/a"),
    ("forbid prefix http://h\\a?x=\\b", "forbid prefix http://h/a?x=\\b"),
    ("forbid prefix http://h?x=\\b/c", "forbid prefix http://h/?x=\\b/c"),
    ("allow address 9.0.0.0 255.0.0.0", "allow address 9.0.0.0 255.0.0.0"),
    ("allow address 9.1.2.3 255.0.0.0", "allow address 9.0.0.0 255.0.0.0"),
    ("allow address 9.1.2.3 255.0.255.0", "allow address 9.0.2.0 255.0.255.0"),
    ("allow address 9.0.0.0/8", "allow address 9.0.0.0 255.0.0.0"),
    ("allow address 9.0.0.0 /8", "allow address 9.0.0.0 255.0.0.0"),
    ("allow address 9.0.0.0/255.0.0.0", "allow address 9.0.0.0 255.0.0.0"),
    ("allow address [9.1.2.3]", "allow address 9.1.2.3 255.255.255.255"),
    ("allow address [2001:db8:0:1:0:0:0:1]", "allow address 2001:db8:0:1::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("allow address 2001:db8::5 [ffff:ffff::]", "allow address 2001:db8:: ffff:ffff::"),
    ("allow address [2001:db8::]/32", "allow address 2001:db8:: ffff:ffff::"),
    ("allow address ::ffff:9.1.2.3", "allow address 9.1.2.3 255.255.255.255"),
    ("allow address ::ffff:9.1.2.3/104", "allow address 9.0.0.0 255.0.0.0"),
    ("forbid address 0.0.0.0 0.0.0.0", "forbid address 0.0.0.0 0.0.0.0"),
    ("forbid address :: ::", "forbid address :: ::"),
]

REFUSED = [
    # line, column, words of the message
    ("alow domain www.ibm.com", 1, "did you mean 'allow'?"),
    ("deny domain www.ibm.com", 1, "did you mean 'forbid'?"),
    ("disallow domain www.ibm.com", 1, "did you mean 'forbid'?"),
    ("www.ibm.com", 1, "expected 'allow' or 'forbid', not 'www.ibm.com'"),
    ("allow", 6, "expected domain, prefix or address and a target"),
    ("allow domian www.ibm.com", 7, "did you mean 'domain'?"),
    ("allow url http://www.ibm.com/", 7, "did you mean 'prefix'?"),
    ("allow www.ibm.com", 7, "for a host write 'allow domain www.ibm.com'"),
    ("allow ftp://www.ibm.com/", 7, "a URL with http:// or https://"),
    ("  allow domain", 15, "expected a host name"),
    ("allow prefix  ", 13, "expected a URL that begins with http://"),
    ("allow address", 14, "expected an IP address"),
    ("allow domain http://www.ibm.com/", 14, "without a scheme; write 'www.ibm.com'"),
    ("allow domain www.ibm.com/docs", 14, "a domain target has no path"),
    ("allow domain www.ibm.com extra", 26, "unexpected 'extra': a rule ends with its target"),
    ("allow domain www.ibm.com # ours", 26, "a comment needs a line of its own"),
    ("allow domain www.ibm.com:0", 14, "'0' is not a port; it is a number from 1 to 65535"),
    ("allow domain www.ibm.com:65536", 14, "'65536' is not a port"),
    ("allow domain www.ibm.com:", 14, "'' is not a port"),
    ("allow domain :80", 14, "there is no host name here; write * for every host"),
    ("allow domain .", 14, "there is no host name here"),
    ("allow domain .ibm.com", 14, "write '*.ibm.com'"),
    ("allow domain user@ibm.com", 14, "'user@ibm.com' is not a host name"),
    ("allow domain 010.1.2.3", 14, "is the address 8.1.2.3; write it so"),
    ("allow domain 0x7f.0x1", 14, "is the address 127.0.0.1; write it so"),
    ("allow domain 0X7F.1:80", 14, "is the address 127.0.0.1; write it so"),
    ("allow domain bücher?x", 14, "is not a host name"),
    ("allow domain 1.2.3.999", 14, "is not a host name or IP address"),
    ("allow domain [2001:db8::1", 14, "in brackets"),
    ("allow domain [2001:xyz::1]", 14, "is not a host name or IP address"),
    ("allow domain [2001:xyz:*]", 14, "is not an IPv6 address or a pattern of one"),
    ("allow domain b*ü.example", 14, "mixes * with letters outside ASCII"),
    ("allow prefix www.ibm.com/docs", 14, "begins with http:// or https://"),
    ("allow prefix ftp://www.ibm.com/", 14, "begins with http:// or https://"),
    ("allow prefix http:///docs", 14, "there is no host name after http://"),
    ("allow prefix http://h:abc*/", 14, "'abc*' is not a port or a pattern of one; it holds digits and the wildcard *"),
    ("allow prefix http://*:80:80/", 14, "'*:80' is not a host name"),
    ("allow prefix http://*%61.com/", 14, "'*%61.com' is not a host name"),
    ("allow prefix http://h:99999/", 14, "'99999' is not a port"),
    ("allow prefix http://h/a#b", 14, "no fragment"),
    ("allow prefix http://me:secret@h/", 14, "no user name or password"),
    ("allow prefix http://h/a/../b", 14, "'.' or '..' as a path segment"),
    ("allow prefix http://h/%2e%2E/b", 14, "'.' or '..' as a path segment"),
    ("allow prefix http://h/a b", 25, "only address rules have a netmask"),
    ("allow prefix http://h/\x00", 14, "control character"),
    ("allow address www.ibm.com", 15, "is not an IP address"),
    ("allow address 9.0.0", 15, "'9.0.0' is not an IP address"),
    ("allow address 010.0.0.1", 15, "is not an IP address"),
    ("allow address fe80::1%eth0", 15, "names a network interface"),
    ("allow address 9.0.0.0 255.0.0", 23, "'255.0.0' is not a netmask"),
    ("allow address 9.0.0.0 8", 23, "write '/8'"),
    ("allow address 9.0.0.0 /33", 23, "between /0 and /32"),
    ("allow address 9.0.0.0 ffff::", 23, "is an IPv6 netmask, but the address is IPv4"),
    ("allow address 2001:db8:: 255.0.0.0", 26, "is an IPv4 netmask, but the address is IPv6"),
    ("allow address 2001:db8::/129", 15, "between /0 and /128"),
    ("allow address 9.0.0.0/8 255.0.0.0", 25, "unexpected '255.0.0.0'"),
    ("allow address 9.0.0.0 255.0.0.0 extra", 33, "unexpected 'extra'"),
]


@pytest.mark.parametrize("line,meaning", READ, ids=[line for line, _ in READ])
def test_a_rule_means(line: str, meaning: str) -> None:
    assert _shown(parse_crawl_rules(line, file="crawl.rules")) == [meaning]


@pytest.mark.parametrize("line,column,words", REFUSED, ids=[line for line, _, _ in REFUSED])
def test_a_mistake_is_named(line: str, column: int, words: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        parse_crawl_rules(f"# first\n\n{line}\n", file="crawl.rules")
    [mistake] = caught.value.mistakes
    assert (mistake.file, mistake.line, mistake.column, mistake.text) == ("crawl.rules", 3, column, line)
    assert words in mistake.message


def test_all_mistakes_of_a_file_are_given() -> None:
    text = "alow domian www.ibm.com\nallow domain a\nforbid domain http://a x\nwhatever this is\nallow address 9 ::"
    with pytest.raises(RuleFileError) as caught:
        parse_crawl_rules(text, file="crawl.rules")
    assert [(m.line, m.column) for m in caught.value.mistakes] == [(1, 1), (1, 6), (3, 15), (3, 24), (4, 1), (5, 15)]
    assert str(caught.value).startswith(
        "crawl.rules:1:1: expected 'allow' or 'forbid', not 'alow'; did you mean 'allow'?\n    alow domian www.ibm.com\n    ^\n"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_byte_order_mark_comments_and_line_ends(end: str) -> None:
    text = "\ufeff" + end.join(["allow domain a", "# forbid domain a", "   # indented", "", "   ", "forbid domain *", ""])
    rules = parse_crawl_rules(text, file="crawl.rules")
    assert [(rule.ref.line, rule.ref.text) for rule in rules.domain] == [(1, "allow domain a"), (6, "forbid domain *")]


def test_a_file_without_rules_is_a_file() -> None:
    assert parse_crawl_rules("", file="crawl.rules") == CrawlRules()


def test_global_rules_are_domain_rules() -> None:
    rules = parse_global_rules("allow domain a\nforbid domain *", file="global.rules")
    assert [rule.target for rule in rules] == ["a", "*"]
    text = "allow domain a\nforbid prefix http://h/\nforbid http://h/\nallow address 9.0.0.0\nallow domain a/b"
    with pytest.raises(RuleFileError) as caught:
        parse_global_rules(text, file="global.rules")
    assert [(m.line, m.column, m.message.split()[1]) for m in caught.value.mistakes] == [
        (2, 8, "prefix"),
        (3, 8, "prefix"),
        (4, 7, "address"),
        (5, 14, "domain"),
    ]


def _shown(rules: CrawlRules) -> list[str]:
    written: list[Rule] = [*rules.domain, *rules.prefix, *rules.address]
    return [_one(rule) for rule in written]


def _one(rule: Rule) -> str:
    if isinstance(rule, DomainRule):
        return f"{rule.action} domain {rule.target}"
    if isinstance(rule, PrefixRule):
        return f"{rule.action} prefix {rule.pattern}"
    return f"{rule.action} address {_address(rule.version, rule.network)} {_address(rule.version, rule.mask)}"


def _address(version: int, value: int) -> str:
    return str(ipaddress.IPv4Address(value) if version == 4 else ipaddress.IPv6Address(value))


# --- rules as administrators have written them for years ------------------------------------------------------------


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
