"""Parsing of the targets of `domain`, `prefix` and `address` rules into the compared form.

Every function takes the word as written, and raises BadTarget with what was expected.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress

from crawlspace.rules.patterns import collapse
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

_BITS = {4: 32, 6: 128}
_HOST = re.compile(r"[A-Za-z0-9_.*-]+\Z")
_IPV6_PATTERN = re.compile(r"\[[0-9A-Fa-f:.*]+\]\Z")
_NUMBER = re.compile(r"(?:[0-9]+|0[Xx][0-9A-Fa-f]*)\Z")
"""The last part of a host that must be an IPv4 address (https://url.spec.whatwg.org/#ends-in-a-number-checker)."""
_ENDING_A_HOST = frozenset("/\\?#@")
_PORT_PATTERN = re.compile(r"[0-9*]+\Z")
# Most rules have this form, which is the normal form; parsing them as URLs would take most of the load time.
_PLAIN_PREFIX = re.compile(r"https?://(?:[a-z0-9*-]+\.)*[a-z*][a-z0-9*-]*(/[A-Za-z0-9._~*/-]*)?\Z")


class BadTarget(ValueError):
    """A wrong target; the message is shown at the word."""


def domain_target(word: str) -> tuple[str, int | None]:
    """Return host pattern and port of a domain target; an IPv6 address in brackets and in normal form."""
    _check_characters(word)
    if "://" in word:
        host = word.split("://", 1)[1].split("/", 1)[0]
        raise BadTarget(f"a domain target is a host name without a scheme; write {quoted(host)}, or a prefix rule for the URL")
    if "/" in word:
        host = word.split("/", 1)[0]
        raise BadTarget(f"a domain target has no path; write {quoted(host)}, or a prefix rule with http:// for part of a site")
    host, port = _host_and_port(word)
    if host.startswith("["):
        return _ipv6_host(host), port
    host = host.removesuffix(".")  # the DNS root, as in URLs
    if not host:
        raise BadTarget("there is no host name here; write * for every host")
    if not host.isascii():
        host = ".".join(_ascii_label(label) for label in host.split(".")) if "*" in host else _normal_host(host)
    _check_host(host)
    if host.startswith("."):
        raise BadTarget(f"a host name does not begin with a dot; write '*{host}' for every host below {quoted(host[1:])}")
    if "*" not in host and _NUMBER.match(host.rpartition(".")[2]) and (address := _normal_host(host)) != host:
        raise BadTarget(f"{quoted(host)} is the address {address}; write it so")
    return collapse(host), port


def prefix_target(word: str) -> str:
    """Return the pattern of a prefix target, to be compared with URLs in normal form; without the implied `*` at its end."""
    plain = _PLAIN_PREFIX.match(word)
    if plain and "/." not in word and "xn--" not in word:
        pattern = word if plain[1] or word.endswith("*") else f"{word}/"
        return collapse(pattern).rstrip("*")
    _check_characters(word)
    scheme, colon, rest = word.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in DEFAULT_PORTS:
        raise BadTarget("a prefix target begins with http:// or https://; for a whole host use a domain rule")
    if "#" in rest:
        raise BadTarget("a prefix target has no fragment: rules see URLs without what follows '#'")
    path, mark, query = rest.partition("?")
    rest = path.replace("\\", "/") + mark + query  # as in URLs, where a query keeps its backslashes
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    authority, tail = rest[:end], rest[end:]
    pattern = _prefix_authority(scheme, authority)
    if tail.startswith("?") and pattern.endswith("*"):  # the star stands for the path, too
        pattern += _prefix_path(f"/{tail}").removeprefix("/")
    elif tail or not pattern.endswith("*"):  # a host without a slash ends there: example.com is not example.community
        pattern += _prefix_path(tail if tail.startswith("/") else f"/{tail}")
    return collapse(pattern).rstrip("*")


def address_target(word: str) -> tuple[int, int, int | None]:
    """Return IP version, address and netmask (None without a slash) as integers."""
    text, slash, length = word.partition("/")
    version, value = _address(text)
    return version, value, netmask(f"/{length}" if length.isdigit() else length, version) if slash else None


def netmask(word: str, version: int) -> int:
    """Return a netmask as an integer: an address of the same version, with any bits, or `/length`."""
    bits = _BITS[version]
    if word.startswith("/"):
        length = word[1:]
        if not (length.isascii() and length.isdigit() and len(length) <= 3 and int(length) <= bits):
            raise BadTarget(f"{quoted(word)} is not a mask length of IPv{version}; it lies between /0 and /{bits}")
        return ((1 << bits) - 1) ^ ((1 << (bits - int(length))) - 1)
    try:
        mask = ipaddress.ip_address(_bare(word))
    except ValueError as error:
        meant = f"; for the first {word} bits write '/{word}'" if word.isdigit() else ""
        example = "255.255.0.0" if version == 4 else "ffff:ffff::"
        raise BadTarget(
            f"{quoted(word)} is not a netmask; expected a mask like {example}, or a length like '/16'{meant}"
        ) from error
    if mask.version != version:
        raise BadTarget(f"{quoted(word)} is an IPv{mask.version} netmask, but the address is IPv{version}")
    return int(mask)


def _address(word: str) -> tuple[int, int]:
    try:
        address = ipaddress.ip_address(_bare(word))
        if "%" in word:
            raise BadTarget(f"{quoted(word)} names a network interface; write the address without it")
        return address.version, int(address)
    except BadTarget:
        raise
    except ValueError as error:
        raise BadTarget(
            f"{quoted(word)} is not an IP address; expected one like 9.0.0.0 or 2001:db8::1, then a netmask; for a name use a domain rule"
        ) from error


def _bare(word: str) -> str:
    return word[1:-1] if word.startswith("[") and word.endswith("]") else word


def _check_host(host: str) -> None:
    if not _HOST.match(host):
        raise BadTarget(f"{quoted(host)} is not a host name; it may hold letters, digits, '-', '_', '.' and the wildcard *")


def _check_characters(word: str) -> None:
    if any(c < " " or c == "\x7f" for c in word):
        raise BadTarget("the target holds a control character; remove it")


def _host_and_port(word: str) -> tuple[str, int | None]:
    """Split host and port. Several colons without brackets are an IPv6 address, which has no port then."""
    if word.startswith("["):
        host, bracket, rest = word.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadTarget(f"{quoted(word)} is not an IPv6 address in brackets; expected [address] or [address]:port")
        return host + bracket, _port(rest[1:]) if rest else None
    if word.count(":") > 1:
        return f"[{word}]", None
    host, colon, port = word.partition(":")
    return host, _port(port) if colon else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise BadTarget(f"{quoted(text)} is not a port; it is a number from 1 to 65535, and left off for every port")
    return int(text)


def _ipv6_host(host: str) -> str:
    if "*" not in host:
        return _normal_host(host)
    if not _IPV6_PATTERN.match(host):
        raise BadTarget(f"{quoted(host[1:-1])} is not an IPv6 address or a pattern of one")
    return collapse(host.lower())


def _normal_host(host: str) -> str:
    if not set(host) & _ENDING_A_HOST:
        with suppress(MalformedUrl):
            return parse(f"http://{host}/").host
    raise BadTarget(f"{quoted(host)} is not a host name or IP address")


def _ascii_label(label: str) -> str:
    """Return a label as in URLs: in xn-- form if it has letters outside ASCII."""
    if label.isascii():
        return label
    if "*" in label:
        raise BadTarget(
            f"{quoted(label)} mixes * with letters outside ASCII; write it in its xn-- form, or * for the whole label"
        )
    return _normal_host(label)


def _prefix_authority(scheme: str, authority: str) -> str:
    """Return scheme and host in normal form, without the default port."""
    if "@" in authority:
        raise BadTarget("a prefix target has no user name or password; URLs with one are never crawled")
    if not authority or authority.startswith(":"):
        raise BadTarget(f"there is no host name after {scheme}://")
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, ""
    if "*" in port:
        if not _PORT_PATTERN.match(port):
            raise BadTarget(f"{quoted(port)} is not a port or a pattern of one; it holds digits and the wildcard *")
    elif port:
        number = _port(port)
        port = "" if number == DEFAULT_PORTS[scheme] else str(number)
    host = _host_pattern(host.lower()) if "*" in host else _normal_host(host)
    return f"{scheme}://{host}:{port}" if port else f"{scheme}://{host}"


def _host_pattern(host: str) -> str:
    """Return a host with wildcards as in URLs; an IPv6 address may be incomplete, if the pattern ends inside it."""
    if host.startswith("["):
        return host
    host = ".".join(_ascii_label(label) for label in host.removesuffix(".").split("."))
    _check_host(host)
    return host


def _prefix_path(tail: str) -> str:
    """Return path and query with escapes as in URLs. An added `x` keeps an incomplete last segment from being normalised."""
    path, mark, query = tail.partition("?")
    complete = path.split("/") if mark else path.split("/")[:-1]
    if any(segment.lower().replace("%2e", ".") in {".", ".."} for segment in complete):
        raise BadTarget("a URL never has '.' or '..' as a path segment when rules are applied; write the path without")
    path = parse(f"http://h{path}x").path[:-1]
    if not mark:
        return path
    return f"{path}?{(parse(f'http://h/?{query}x').query or 'x')[:-1]}"
