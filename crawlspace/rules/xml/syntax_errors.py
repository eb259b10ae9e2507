"""What is wrong with a file that is not XML, in words that say what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.parsers.expat import ExpatError, errors

from crawlspace.errors import Mistake
from crawlspace.printable import quoted
from crawlspace.rules.xml.positions import Element, XmlText

NAMESPACE = "exa:com.exalead.actionrules.v21"


def not_well_formed(error: ExpatError, text: XmlText, open_elements: Sequence[Element]) -> Mistake:
    """Return the mistake that made the XML parser give up; `open_elements` are those not closed yet, the innermost last."""
    at = min(text.offset(error.lineno, error.offset + 1), len(text.text))
    if error.code in {_INVALID, _SYNTAX} and not open_elements and (found := _text_before(text.text, at)):
        return text.mistake_at(*found)
    if error.code == _INVALID:
        return _invalid(text, at)
    if error.code == _UNCLOSED:
        return text.mistake_at(at, _unclosed(text.text, at))
    if error.code == _MISMATCHED:
        at = max(text.text.rfind("<", 0, at + 1), 0)  # the parser's place is in the end tag
    if error.code in {_MISMATCHED, _NOTHING}:
        return text.mistake_at(at, _wrong_end(text.text, at, open_elements))
    if error.code == _UNKNOWN_ENTITY:
        unknown = (found for found in _REFERENCE.finditer(text.text, at) if found[1] not in _ENTITIES)
        reference = next(unknown, None)
        if reference is None:
            return text.mistake_at(at, f"a name between & and ; {_ENTITY_WAY}")
        return text.mistake_at(reference.start(), f"{reference[0]} {_ENTITY_WAY}")
    if error.code == _UNBOUND:
        return text.mistake_at(at, _unbound(text.text, at))
    return text.mistake_at(
        at, _SENTENCES.get(error.code, f"this is not well-formed XML: {errors.messages.get(error.code, error)}")
    )


_INVALID = errors.codes[errors.XML_ERROR_INVALID_TOKEN]
_SYNTAX = errors.codes[errors.XML_ERROR_SYNTAX]
_UNCLOSED = errors.codes[errors.XML_ERROR_UNCLOSED_TOKEN]
_MISMATCHED = errors.codes[errors.XML_ERROR_TAG_MISMATCH]
_NOTHING = errors.codes[errors.XML_ERROR_NO_ELEMENTS]
_UNKNOWN_ENTITY = errors.codes[errors.XML_ERROR_UNDEFINED_ENTITY]
_UNBOUND = errors.codes[errors.XML_ERROR_UNBOUND_PREFIX]
_SENTENCES = {
    _SYNTAX: "this is no XML: the file begins with a tag, as <Rules>",
    errors.codes[errors.XML_ERROR_DUPLICATE_ATTRIBUTE]: "this attribute stands twice in one tag",
    errors.codes[errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]: "the outermost element ends before this; a file has one, "
    "and several Rules stand inside one",
    errors.codes[errors.XML_ERROR_BAD_CHAR_REF]: "no character has this number",
    errors.codes[errors.XML_ERROR_MISPLACED_XML_PI]: "<?xml …?> stands at the very beginning of the file or not at all; "
    "remove what is before it",
}
_ENTITIES = ("amp", "lt", "gt", "quot", "apos")
_ENTITY_WAY = (
    "is not known in XML, which has &amp; &lt; &gt; &quot; &apos; and numbers such as &#233;; '&' itself is written &amp;"
)
_REFERENCE = re.compile(r"&([^\s#;&<>\"']+);")
_BARE_AMPERSAND = re.compile(r"&[^\s;&<>\"']*\Z")
_OPENING = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
"""What may stand before the outermost element."""
_FIRST_TAG = re.compile(r"<[^\W\d][\w.:-]{0,60}")
_END_TAG = re.compile(r"</([^\s<>/]*)")
_PREFIX = re.compile(r"""[<\s]([^\s<>/="':]+):[^\s<>/="':]+""")
_DECLARED_PREFIX = re.compile(r"xmlns:([^\s=]+)")


def _text_before(text: str, at: int) -> tuple[int, str] | None:
    """Return where text begins that stands before the first tag, and what is wrong with that; None if there is no such tag or text."""
    begin = _OPENING.match(text)
    start = begin.end() if begin else 0
    tag = _FIRST_TAG.search(text, start)
    if tag is None or not start <= at <= tag.start() or start == tag.start() or not text[start].isprintable():
        return None
    return start, f"text stands before {tag[0]}>; a rules.xml begins with <Rules>, and comments stand in <!-- -->"


def _invalid(text: XmlText, at: int) -> Mistake:
    all_text = text.text
    character = all_text[at : at + 1]
    if bare := _BARE_AMPERSAND.search(all_text, max(0, at - 40), at):
        return text.mistake_at(bare.start(), "'&' itself is written &amp; in XML")
    if character == "&":
        return text.mistake_at(at, "'&' itself is written &amp; in XML")
    if character == "<":
        message = "'<' cannot stand here: the tag or the quotation mark before it is not closed; in a value '<' is written &lt;"
        return text.mistake_at(at, message)
    comment = all_text.rfind("<!--", 0, at)
    if comment >= 0 and all_text[at - 2 : at] == "--" and all_text.find("-->", comment + 4, at + 1) < 0:
        return text.mistake_at(at - 2, "'--' cannot stand inside a comment")
    if character and not character.isprintable():
        return text.mistake_at(at, f"the character U+{ord(character):04X} cannot stand in XML; remove it")
    shown = f" at {character!r}" if character else ""
    message = (
        f'this is not well-formed XML{shown}: a tag is written <Name attribute="value"/>, with a blank before each attribute'
    )
    return text.mistake_at(at, message)


def _unclosed(text: str, at: int) -> str:
    if text.startswith("<!--", at):
        return "this comment is not closed; it ends with -->"
    return "this tag is not closed, or the closing quotation mark of a value in it is missing"


def _wrong_end(text: str, at: int, open_elements: Sequence[Element]) -> str:
    if not open_elements:
        return "the file is empty; without rules it holds <Rules/>"
    inner = open_elements[-1]
    still = f"<{inner.name}> of line {inner.line} is still open; close it, or write <{inner.name} …/> if it holds nothing"
    if at >= len(text.rstrip()):
        return f"the file ends here, but {still}"
    found = _END_TAG.match(text, at)
    name = found[1] if found else ""
    return f"</{name}> does not fit: {still}"


def _unbound(text: str, at: int) -> str:
    declared = {*_DECLARED_PREFIX.findall(text), "xml", "xmlns"}
    prefixes = (found[1] for found in _PREFIX.finditer(text, at, text.find(">", at)) if found[1] not in declared)
    prefix = next(prefixes, "ar")
    return f'the prefix {quoted(prefix)} is not declared; write xmlns:{prefix}="{NAMESPACE}" in the outermost element, or leave the prefix off'
