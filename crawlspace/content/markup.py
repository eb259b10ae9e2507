"""HTML as a flat run of tags with the text before each: linear in time, without a tree.

A tree is more than a crawler needs, and it can be turned against it. Measured on two shared cores (`python -m benchmarks.extract`
prints the first line afresh):

    what                                 8 KB page   1 MB of nested <div>   13 KB of unclosed <b n=…><p>
    this module and `html`               0.37 ms     0.16 s                 1 ms
    selectolax (lexbor), unwrapped       0.22 ms     104 s                  1.2 s and 400 MB
    lxml (libxml2), XPath and XSLT       0.23 ms     stops at depth 2048 and loses the rest of the page

Links, metas and the text with its word breaks follow from the tags alone, so the tokenizer of the HTML standard is enough.
Every pattern here is possessive: no input makes it go back over what it has read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5 as _references

RAW_TEXT = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"})
"""Elements whose content is text up to their end tag, whatever it looks like."""

_SPACE = r"\t\n\f\r "
_VALUE = rf"""=[{_SPACE}]*+(?:"[^"]*+"?|'[^']*+'?|[^{_SPACE}>"'][^{_SPACE}>]*+)?"""
_TAG = rf"(/?[a-zA-Z][^{_SPACE}/>]*+)([^=>]*+(?:{_VALUE}[^=>]*+)*+)(>?)"
_COMMENT = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?)"
_BOGUS = r"(?:[!?]|/(?![a-zA-Z]))[^>]*+>?"
_CDATA = r"!\[CDATA\[([^\]]*+(?:\](?!\]>)[^\]]*+)*+)(?:\]\]>)?"
_DOCTYPE = r"!DOCTYPE[^\[>]*+\[[^\]]*+\]?[^>]*+>?"
_LONE = r"(?=[^a-zA-Z/!?]|/?\Z)"  # a `<` that begins nothing
_TEXT = f"([^<]*+(?:<{_LONE}[^<]*+)*+)"
_HTML = re.compile(rf"{_TEXT}(?:<(?:{_TAG}|{_COMMENT}|{_BOGUS})|\Z)")
_XML = re.compile(rf"{_TEXT}(?:<(?:{_TAG}|{_CDATA}|{_COMMENT}|{_DOCTYPE}|{_BOGUS})|\Z)")
_ATTRIBUTE = re.compile(
    rf"""([^{_SPACE}/>=][^{_SPACE}/>=]*+)(?:[{_SPACE}]*+=[{_SPACE}]*+(?:"([^"]*+)"?|'([^']*+)'?|([^{_SPACE}>]*+)))?"""
)


def _either_case(name: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in name)


# A literal `</` first lets the engine search for it; IGNORECASE would not.
_RAW_END = {name: re.compile(f"</{_either_case(name)}(?=[{_SPACE}/>])") for name in RAW_TEXT if name != "plaintext"}
_SCRIPT_MARK = re.compile(f"<!--|-->|<(/?){_either_case('script')}(?=[{_SPACE}/>])")
_SPECIAL = RAW_TEXT | {"svg", "/svg", "math", "/math"}
_BACK_TO_HTML = frozenset(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small"
    " span strong strike sub sup table tt u ul var".split()
)
"""Tags that end SVG and MathML content that was left open (HTML standard, 13.2.6.5)."""

Token = tuple[str, str, str]
"""Text before the tag, with its character references; the tag's name in lower case, `/p` for an end tag, empty for
a comment and at the end; its attributes as written."""


def tokens(html: str, *, xml: bool = False) -> Iterator[Token]:
    """Yield the page's tags, each with the text before it, as the tokenizer of the HTML standard finds them.

    The content of a raw text element comes as the text before its end tag, and that end tag always comes. A tag cut off by
    the end of the page is dropped. `xml` is for XHTML: CDATA sections are text, and there is no raw text, as in SVG.
    """
    pattern = _XML if xml else _HTML
    outer = foreign = 1 if xml else 0
    scan = 0
    while True:
        for match in pattern.finditer(html, scan):
            text, name, attributes, closed = match.group(1, 2, 3, 4)
            if name is None:
                yield text, "", ""
                if xml and match[5]:
                    yield match[5].replace("&", "&amp;"), "", ""
                continue
            if not closed:
                yield text, "", ""
                return
            name = name.lower()
            yield text, name, attributes
            if name not in _SPECIAL:
                if foreign > outer and name in _BACK_TO_HTML:
                    foreign = outer
                continue
            if name in RAW_TEXT:
                if foreign:  # no raw text there, but elements that are closed in themselves, unlike HTML's own
                    if attributes.endswith("/"):
                        yield "", "/" + name, ""
                    continue
                start = match.end()
                scan = _raw_end(html, name, start)
                yield html[start:scan], "/" + name, ""
                break
            if name[0] == "/":
                foreign = max(foreign - 1, outer)
            elif not attributes.endswith("/"):
                foreign += 1
        else:
            return


def xml_tokens(text: str) -> Iterator[Token]:
    """Yield the tags of an XML document that is not XHTML: no element's content is raw text there."""
    for match in _XML.finditer(text):
        yield match[1], (match[2] or "").lower(), match[3] or ""
        if match[5]:
            yield match[5].replace("&", "&amp;"), "", ""


def _raw_end(html: str, name: str, start: int) -> int:
    """Where the end tag of a raw text element begins, or the end of the page."""
    if name == "plaintext":
        return len(html)
    match = _RAW_END[name].search(html, start)
    if match is None:
        return len(html)
    if name != "script" or html.find("<!--", start, match.start()) < 0:
        return match.start()
    return _escaped_script_end(html, start)


def _escaped_script_end(html: str, start: int) -> int:
    """The end of a script that holds `<!--`: from there on `<script>` hides the next `</script>`, until `-->`."""
    escaped = double = False
    for match in _SCRIPT_MARK.finditer(html, start):
        mark = match[0]
        if mark == "<!--":
            escaped = escaped or not html.startswith((">", "->"), match.end())
        elif mark == "-->":
            escaped = double = False
        elif match[1]:
            if not double:
                return match.start()
            double = False
        elif escaped:
            double = True
    return len(html)


def attributes_of(written: str) -> dict[str, str]:
    """Return a tag's attributes by name in lower case, the first of each name; references are not yet resolved."""
    values: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(written):
        values.setdefault(name.lower(), double or single or bare)
    return values


def resolved_attribute(value: str) -> str:
    """Return an attribute's value with character references resolved by the rules for attributes.

    `&copy=1` and `&region=x` stay as they are there: a name without a semicolon counts only where nothing follows it.
    """
    if "&" not in value:
        return value
    plain = value.replace("&amp;", "&")
    if len(value) - len(plain) == 4 * value.count("&"):  # no other reference, as in most links
        return plain
    return _REFERENCE.sub(_attribute_reference, value)


def resolved_text(text: str) -> str:
    """Return text with character references resolved."""
    if "&" not in text:
        return text
    if "&#" in text:  # Python refuses to read numbers of more than 4,300 digits
        text = _LONG_NUMBER.sub("\ufffd", text)
    return unescape(text)


_REFERENCE = re.compile(r"&(?:#[0-9]++;?|#[xX][0-9a-fA-F]++;?|[a-zA-Z][a-zA-Z0-9]*+;?)=?")
_LONG_NUMBER = re.compile(r"&#0*+[0-9]{8,}+;?")


def _attribute_reference(match: re.Match[str]) -> str:
    written = match[0]
    if written[1] == "#":
        tail = "=" if written[-1] == "=" else ""
        return resolved_text(written.removesuffix("=")) + tail
    if written[-1] == "=":
        name = written[1:-1]
        return _references[name] + "=" if name[-1] == ";" and name in _references else written
    return _references.get(written[1:], written)
