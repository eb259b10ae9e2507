"""HTML forms as a browser sends them: with hidden fields, those that are filled already, and the button that is pressed (HTML, 4.10.21).

Each page that may be the log-in is looked through for its form, so a hostile page must not make that slow. The tags of its beginning
are read without a tree. A tree is made where a form is filled or a CSS selector needs one, of so many tags, each with a bounded number
of attributes: libxml2 needs a minute for a tag with 100,000 of them. Fields and addresses are in the encoding of the page, or in the one
that the form asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlsplit, urlunsplit

import lxml.html
from lxml import etree
from scrapy import Request

from crawlspace.content.charset import charset_parameter, codec_of, decode, encoded, in_encoding, label_of
from crawlspace.content.markup import attributes_of, first_attributes, resolved_attribute, tokens
from crawlspace.runtime.access.addresses import shown, target_of
from crawlspace.text import printable, quoted

if TYPE_CHECKING:
    from lxml.html import FormElement
    from scrapy.http import Response

_BUTTONS = ".//input[@type='submit' or @type='image'] | .//button[not(@type) or @type='submit']"
_MOST_SHOWN = 10
_MOST_TAGS, _MOST_FIELDS = 10_000, 1_000
"""Of a page, where its log-in is looked for: such pages are short."""
_MOST_DEPTH = 200
"""Elements within each other: a selector such as `div div div` compares all of them with each other."""
_MOST_TEXT = 500_000
"""Characters of all its texts and attributes."""
_MOST_ATTRIBUTES, _ORDINARY_TAG = 50, 200
"""Of one tag; characters of attributes that are not counted."""
_FIELDS = frozenset({"input", "select", "textarea"})
_NAMED = _FIELDS | {"button", "a", "object", "iframe", "img", "map", "meta", "param", "fieldset", "output"}
_OF_FORMS = _FIELDS | {"form", "/form"}
_NAME = re.compile(r"[\w$-]+")
_END_BY_THEMSELVES = _FIELDS | frozenset(
    "area base br col dd dt embed hr img li link meta optgroup option p source tbody td tfoot th thead tr track wbr".split()
)
_NO_TEXT = frozenset({"/script", "/style", "/iframe", "/xmp", "/noembed", "/noframes"})


class NoFormError(Exception):
    """A page has no form as it is expected; the message says what it has."""


def filled(response: Response, fields: Mapping[str, str], *, selector: str = "") -> Request:
    """Return the request that a form of a page makes with these fields, given by name or by CSS selector. Raises NoFormError."""
    text, codec = _read(response)
    root = _tree(text, response.url)
    form, chosen = _form(root, response.url, fields, selector)
    names = {chosen[field]: value for field, value in fields.items()}
    values = [(name, value) for name, value in form.form_values() if name not in names]
    values += names.items()
    button = next((one for one in form.xpath(_BUTTONS) if one.get("name")), None)
    if button is not None and button.get("name") not in names:
        values.append((button.get("name"), button.get("value") or ""))
    base = root.base_url or response.url
    given = in_encoding((form.get("action") or "").strip(), codec)
    action = target_of(target_of(response.url, base) or response.url, given or response.url)
    if not action:
        raise NoFormError(f"{shown(response.url)} has a form that is sent to {quoted(given)}, which is no URL of the web")
    data = _encoded(values, next(filter(None, map(codec_of, (form.get("accept-charset") or "").split())), codec))
    if (form.get("method") or "get").lower() != "post":
        return Request(urlunsplit(urlsplit(action)._replace(query=data, fragment="")))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return Request(action, method="POST", body=data.encode("ascii"), headers=headers)


def _encoded(values: list[tuple[str, str]], codec: str) -> str:
    """Return fields in an encoding; one called `_charset_` gets its name."""
    named = [(name, label_of(codec) if name == "_charset_" else value) for name, value in values]
    return "&".join("=".join(quote_plus(encoded(part, codec)) for part in pair) for pair in named)


def has_form(response: Response, fields: Mapping[str, str], *, selector: str = "") -> bool:
    """Return whether the beginning of a page has a form that `filled` would fill."""
    html = _read(response)[0]
    needed = {name for name in fields if _is_name(name)}
    if not (all(name in html for name in needed) or "&#" in html):
        return False
    if not any(len(names) >= len(fields) and names >= needed for names in _names_of_forms(html)):
        return False
    if not selector and len(needed) == len(fields):
        return True
    try:
        _form(_tree(html, response.url), response.url, fields, selector)
    except NoFormError:
        return False
    return True


def tree_of(response: Response) -> lxml.html.HtmlElement:
    """Return the elements of the beginning of a page, without its scripts. Raises NoFormError for an empty one."""
    return _tree(_read(response)[0], response.url)


def _tree(html: str, url: str) -> lxml.html.HtmlElement:
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
    written = "".join(_bounded(html)).encode("utf-8", "replace")
    try:
        root = lxml.html.document_fromstring(written, parser=parser, base_url=url)
    except etree.ParserError as error:
        raise NoFormError(f"{shown(url)} is no page: {printable(str(error))}") from error
    if (base := root.find(".//base[@href]")) is not None:
        root.getroottree().docinfo.URL = target_of(url, base.get("href")) or url
    return root


def _read(response: Response) -> tuple[str, str]:
    """Return the text of a page, and its encoding."""
    declared = (response.headers.get(b"Content-Type") or b"").decode("latin-1")
    return decode(response.body, charset_parameter(declared), markup=True)


def _bounded(html: str) -> Iterator[str]:
    """Yield the first tags and texts of a page. A form within a form is none (HTML, 13.2.6.4.7)."""
    left, in_form, depth = _MOST_TEXT, False, 0
    for text, name, written in islice(tokens(html), _MOST_TAGS):
        if text and name not in _NO_TEXT and len(text) <= left:
            left -= len(text)
            yield text.replace("<", "&lt;")
        if name in ("", "!") or (name == "form" and in_form):
            continue
        if name in ("form", "/form"):
            in_form = name == "form"
        elif name[0] == "/":
            depth = max(0, depth - (name[1:] not in _END_BY_THEMSELVES))
        elif name not in _END_BY_THEMSELVES:
            depth += 1
            if depth > _MOST_DEPTH:
                continue
        attributes = _bounded_attributes(written)
        if len(attributes) <= left:
            left -= len(attributes)
            yield f"<{name} {attributes}>"


def _bounded_attributes(written: str) -> str:
    return written if len(written) <= _ORDINARY_TAG else first_attributes(written, _MOST_ATTRIBUTES)


def _names_of_forms(html: str) -> Iterator[set[str]]:
    """Yield the names of the fields of each form, without a tree."""
    names: set[str] | None = None
    left = _MOST_FIELDS
    for _, name, written in islice(tokens(html), _MOST_TAGS):
        if name not in _OF_FORMS:
            continue
        left -= 1
        if name == "/form" or not left:
            if names:
                yield names
            names = None
            if not left:
                return
        elif name == "form":
            names = set() if names is None else names
        elif names is not None:
            names.add(resolved_attribute(attributes_of(_bounded_attributes(written)).get("name", "")))
    if names:
        yield names


def _is_name(field: str) -> bool:
    """Return whether a field can be no CSS selector of an element that has a name."""
    return _NAME.fullmatch(field) is not None and field not in _NAMED


def _forms(root: lxml.html.HtmlElement) -> list[tuple[FormElement, dict[str, None]]]:
    """Return the forms of a page, each with the names of its fields, in one pass."""
    found: list[tuple[FormElement, dict[str, None]]] = []
    form: FormElement | None = None
    for event, element in etree.iterwalk(root, events=("start", "end"), tag=("form", *_FIELDS)):
        if element.tag == "form":
            form = element if event == "start" else None
            if event == "start":
                found.append((element, {}))
        elif event == "start" and form is not None and element.get("name"):
            found[-1][1][element.get("name")] = None
    return found


def _form(root: lxml.html.HtmlElement, url: str, fields: Mapping[str, str], selector: str) -> tuple[FormElement, dict[str, str]]:
    """Return the first form that has all fields, and their names."""
    forms = _forms(root)
    if selector:
        chosen = set(_owners(root, selector))
        forms = [(form, names) for form, names in forms if form in chosen]
        if not forms:
            raise NoFormError(f"{shown(url)} has no form at {quoted(selector)}")
    selected: dict[str, dict[FormElement, str]] = {
        field: {} if all(field in names for _, names in forms) else _selected(root, field) for field in fields
    }
    for form, names in forms:
        found = {field: field if field in names else selected[field].get(form, "") for field in fields}
        if all(found.values()):
            return form, found
    wanted = ", ".join(map(quoted, fields))
    has = "; ".join(_shown(names) for _, names in forms[:_MOST_SHOWN])
    raise NoFormError(f"{shown(url)} has no form with {wanted}: " + (f"its forms have {has}" if forms else "it has no form"))


def _owners(root: lxml.html.HtmlElement, selector: str) -> Iterator[FormElement]:
    """Yield the forms that a selector selects, or in which it selects something."""
    yield from (form for _, form in _within_forms(root, selector))


def _selected(root: lxml.html.HtmlElement, selector: str) -> dict[FormElement, str]:
    """Return the name of the first field that a selector selects in each form; none if it is no selector."""
    found: dict[FormElement, str] = {}
    for element, form in _within_forms(root, selector):
        if element.get("name"):
            found.setdefault(form, element.get("name"))
    return found


def _within_forms(root: lxml.html.HtmlElement, selector: str) -> Iterator[tuple[lxml.html.HtmlElement, FormElement]]:
    """Yield what a selector selects in a form, with the form."""
    try:
        selected = set(root.cssselect(selector))
    except etree.XPathError:
        return
    except Exception as error:
        if type(error).__module__.startswith("cssselect"):
            return
        raise
    form: FormElement | None = None
    for event, element in etree.iterwalk(root, events=("start", "end")) if selected else ():
        if element.tag == "form":
            form = element if event == "start" else None
        if event == "start" and form is not None and element in selected:
            yield element, form


def _shown(names: Mapping[str, None]) -> str:
    return printable(", ".join(islice(names, _MOST_SHOWN)) or "no fields")
