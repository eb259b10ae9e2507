"""Parse HTML into a sequence of tags with the text before each, in linear time and without a tree.

A crawler needs no tree, and hostile pages can make a tree expensive. Measured on two shared cores (`python -m benchmarks.extract`
prints the first line again):

    what                                 8 KB page   1 MB of nested <div>   13 KB of unclosed <b n=…><p>
    this module and `html`               0.20 ms     0.08 s                 1 ms
    selectolax (lexbor), unwrapped       0.22 ms     104 s                  1.2 s and 400 MB
    lxml (libxml2), XPath and XSLT       0.23 ms     stops at depth 2048 and loses the rest of the page

Links, metas and text with word breaks follow from the tags alone, so the tokenizer of the HTML standard suffices.
All patterns are possessive: they never backtrack.

There are two tokenizers. `tokens` follows the standard for any page. Nearly all pages are simple enough to be split at their tags
by one `split`, in a third of the time: `plain_tags` does that, and returns None if the results could differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5 as _references
from itertools import islice

RAW_TEXT = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"})
"""Elements whose content is text up to their end tag."""
VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
"""Elements without content and end tag."""
INLINE = frozenset(
    "a abbr acronym b basefont bdi bdo big blink cite code data del dfn em font i ins kbd link mark meta nobr param q rb ruby s samp slot"
    " small source span strike strong sub sup time track tspan tt u var wbr".split()
)
"""Elements that don't separate words."""

_SPACE = r"\t\n\f\r "
_VALUE = rf"""=[{_SPACE}]*+(?:"[^"]*+"?|'[^']*+'?|[^{_SPACE}>"'][^{_SPACE}>]*+)?"""
_TAG = rf"(/?[a-zA-Z][^{_SPACE}/>]*+)([^=>]*+(?:{_VALUE}[^=>]*+)*+)(>?)"
_COMMENT = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?)"
_BOGUS = r"(?:[!?]|/(?![a-zA-Z]))[^>]*+>?"
_CDATA = r"!\[CDATA\[([^\]]*+(?:\](?!\]>)[^\]]*+)*+)(?:\]\]>)?"
_DOCTYPE = r"!DOCTYPE[^\[>]*+\[[^\]]*+\]?[^>]*+>?"
_LONE = r"(?=[^a-zA-Z/!?]|/?\Z)"  # a `<` that begins no tag
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
_FOREIGN = frozenset({"svg", "math"})
_SPECIAL = RAW_TEXT | {"svg", "/svg", "math", "/math"}
_RAW_OUTSIDE = RAW_TEXT | {"!script"}
_BACK_TO_HTML = frozenset(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small"
    " span strong strike sub sup table tt u ul var".split()
)
"""Tags that end unclosed SVG and MathML content (HTML standard, 13.2.6.5)."""

# Plain markup: `<` only at the beginning of tags, and closed quotes. `_TAG` matches the same there.
_PLAIN_VALUE = rf"""=(?:"[^"<]*+"|[{_SPACE}]*+(?:"[^"<]*+"|'[^'<]*+'|[^{_SPACE}<>"'][^{_SPACE}<>]*+|(?=>)))"""
_PLAIN_ATTRIBUTES = rf"[^=<>]*+(?:{_PLAIN_VALUE}[^=<>]*+)*+"
_PLAIN_TAG = re.compile(rf"<(/?[a-zA-Z][^{_SPACE}/<>]*+|!(?:script)?(?=>))((?=>)|{_PLAIN_ATTRIBUTES})>")
_END = rf"(?=[{_SPACE}/>])"
_SPLIT = re.compile(
    r"<(?:!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>|\Z))|[!?](?!--)[^<>]*+>|[sS](?:"
    rf"(?i:cript){_END}{_PLAIN_ATTRIBUTES}>[^<]*+(?:<(?!!--|/(?i:script){_END})[^<]*+)*+|"
    rf"(?i:tyle){_END}{_PLAIN_ATTRIBUTES}>[^<]*+(?:<(?!/(?i:style){_END})[^<]*+)*+)(<!--|))"
)
"""A comment, or a script or style without its end tag; the group is None for a comment, and not empty if an end tag may be hidden."""
MAX_PLAIN = 1_000_000
"""Maximal characters of a page that is split at once, because three strings for each tag are in memory together."""

Token = tuple[str, str, str]
"""The text before the tag, with character references; the tag's name in lower case, `/p` for an end tag, `!` for a comment, empty
at the end; its attributes as written."""

Tags = tuple[list[str], list[str], list[str]]
"""Tokens as columns: texts, names, attributes."""


def tags(html: str, *, xml: bool = False, of_scripts: bool = False) -> Tags:
    """Return the tokens of a page, fast if the page is plain.

    A `script` or `style` may then be returned as `!script` without attributes and content, unless these are wanted (`of_scripts`).
    """
    plain = plain_tags(html) if not (xml or of_scripts) and len(html) <= MAX_PLAIN else None
    if plain is not None:
        return plain
    texts, names, attributes = [], [], []
    known: dict[str, str] = {}
    for text, name, written in tokens(html, xml=xml):
        texts.append(text)
        names.append(known.setdefault(name, name))  # one string object for each name
        attributes.append(written)
    return texts, names, attributes


def scripts_of_type(html: str, kind: str) -> Iterator[str]:
    """Yield the contents of the scripts of a type that are not in a comment, as written."""
    if kind not in html:
        return
    for match in _SPLIT.finditer(html):
        tag = _PLAIN_TAG.match(match[0])
        if tag is not None and tag[1].lower() == "script" and attributes_of(tag[2]).get("type", "").strip().lower() == kind:
            yield match[0][tag.end() :]


def plain_tags(html: str) -> Tags | None:
    """Return all tags at once; None for a page that needs `tokens`.

    Comments, scripts and styles are replaced by `<!…>` first. If one of them was inside an attribute or a title, that tag is no
    longer plain: if any `<` does not begin a plain tag, the result is None.
    """
    pieces: list[str | None] = list(_SPLIT.split(html))
    marks = pieces[1::2]
    if "<!--" in marks:
        return None
    pieces[1::2] = ["<!>" if mark is None else "<!script>" for mark in marks]
    tags = _PLAIN_TAG.split("".join(pieces))  # type: ignore[arg-type]
    texts, names, attributes = tags[0::3], tags[1::3], tags[2::3]
    if "<" in "".join(texts) or names[-1:] == ["!script"]:  # without an end tag, it may be a script or a style
        return None
    distinct = set(names)
    if not "".join(distinct).islower():
        names = [name.lower() for name in names]
        distinct = set(names)
    special = distinct & _SPECIAL
    for name in special & RAW_TEXT:
        if name == "plaintext" or not _has_no_tags_inside(names, name):
            return None
    if any(_raw_text_in(foreign, names, attributes) for foreign in special & _FOREIGN):
        return None
    names.append("")
    attributes.append("")
    return texts, names, attributes


def _has_no_tags_inside(names: list[str], name: str) -> bool:
    """Return whether every element of this name is directly followed by its end tag."""
    at = -1
    for _ in range(names.count(name)):
        at = names.index(name, at + 1)
        if names[at + 1 : at + 2] != ["/" + name]:
            return False
    return True


def _raw_text_in(foreign: str, names: list[str], attributes: list[str]) -> bool:
    """Return whether an `svg` or `math` contains an element that is raw text in HTML, except a title without tags."""
    end = 0
    for start in [at for at, name in enumerate(names) if name == foreign]:
        depth = 0
        for at in range(max(start, end), len(names)):
            name = names[at]
            if name in _FOREIGN:
                depth += not attributes[at].endswith("/")
            elif name in ("/svg", "/math"):
                depth -= 1
            elif name in _RAW_OUTSIDE and (name != "title" or attributes[at].endswith("/")):
                return True
            if depth <= 0:
                break
            end = at + 1
    return False


def tokens(html: str, *, xml: bool = False) -> Iterator[Token]:
    """Yield the page's tags, each with the text before it, as the tokenizer of the HTML standard does.

    The content of a raw text element is the text before its end tag, which is always generated. A tag cut off by the end of the
    page is dropped. `xml` is for XHTML: CDATA sections are text, and there is no raw text, as in SVG.
    """
    pattern = _XML if xml else _HTML
    outer = foreign = 1 if xml else 0
    scan = 0
    while True:
        for match in pattern.finditer(html, scan):
            text, name, attributes, closed = match.group(1, 2, 3, 4)
            if name is None:
                yield text, "!", ""
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
                if foreign:  # no raw text there, and self-closing tags, unlike in HTML
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
    """Yield the tags of an XML document other than XHTML: no element has raw text."""
    for match in _XML.finditer(text):
        yield match[1], (match[2] or "").lower(), match[3] or ""
        if match[5]:
            yield match[5].replace("&", "&amp;"), "", ""


def _raw_end(html: str, name: str, start: int) -> int:
    """Return the index of the end tag of a raw text element, or the end of the page."""
    if name == "plaintext":
        return len(html)
    match = _RAW_END[name].search(html, start)
    if match is None:
        return len(html)
    if name != "script" or html.find("<!--", start, match.start()) < 0:
        return match.start()
    return _escaped_script_end(html, start)


def _escaped_script_end(html: str, start: int) -> int:
    """Return the end of a script with `<!--`: after it `<script>` hides the next `</script>`, until `-->`."""
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
    """Return a tag's attributes by name in lower case, the first of each name; references are not resolved."""
    found = _ATTRIBUTE.findall(written)
    found.reverse()
    return {name.lower(): double or single or bare for name, double, single, bare in found}


def first_attributes(written: str, most: int) -> str:
    """Return the first attributes of a tag, as written."""
    return " ".join(match[0] for match in islice(_ATTRIBUTE.finditer(written), most))


def resolved_attribute(value: str) -> str:
    """Return an attribute's value with character references resolved by the rules for attributes.

    `&copy=1` and `&region=x` are not references there: a name without a semicolon counts only if no `=` or letter follows.
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
    if "&#" in text:  # Python refuses numbers of more than 4,300 digits
        text = _LONG_NUMBER.sub("\ufffd", _ZEROS.sub("&#0", text))
    return unescape(text)


def collapsed(text: str) -> str:
    """Return the words of a text separated by single spaces, as `" ".join(text.split())`, without a string for each word.

    Most lines need stripping only at the ends.
    """
    lines = [line for line in map(str.strip, text.replace("\xa0", " ").split("\n")) if line]
    text = " ".join(lines)
    if any(map(text.__contains__, _OTHER_SPACES)):
        return one_spaced(text)
    return " ".join([one_spaced(line) if "  " in line else line for line in lines]) if "  " in text else text


def one_spaced(text: str) -> str:
    """As `collapsed`; faster for a short text."""
    return " ".join(text.split())


_OTHER_SPACES = "\t\r\v\f\x1c\x1d\x1e\x1f\x85\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space for `str.split`, besides space, line end and no-break space."""

_REFERENCE = re.compile(r"&(?:#[0-9]++;?|#[xX][0-9a-fA-F]++;?|[a-zA-Z][a-zA-Z0-9]*+;?)=?")
_ZEROS = re.compile(r"&#0{8,}+")
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
