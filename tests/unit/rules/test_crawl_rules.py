"""The grammar of crawl.rules: what is read, and what is said of what can't be."""

from __future__ import annotations

import ipaddress

import pytest

from crawlspace.errors import RuleFileError
from crawlspace.rules.crawl_rules import CrawlRules, DomainRule, PrefixRule, Rule, parse_crawl_rules, parse_global_rules

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
