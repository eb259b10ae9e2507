"""HTML forms as a browser sends them: with hidden fields, those that are filled already, and the button that is pressed (HTML, 4.10.21).

Fields and addresses are in the encoding of the page, or in the one that the form asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlsplit, urlunsplit

import lxml.html
from lxml import etree
from scrapy import Request

from crawlspace.content.charset import charset_parameter, codec_of, decode, encoded, in_encoding, label_of
from crawlspace.printable import printable, quoted
from crawlspace.runtime.access.addresses import shown, target_of

if TYPE_CHECKING:
    from lxml.html import FormElement
    from scrapy.http import Response

_BUTTONS = ".//input[@type='submit' or @type='image'] | .//button[not(@type) or @type='submit']"
_MOST_SHOWN = 10


class NoFormError(Exception):
    """A page has no form as it is expected; the message says what it has."""


def filled(response: Response, fields: Mapping[str, str], *, selector: str = "") -> Request:
    """Return the request that a form of a page makes with these fields, given by name or by CSS selector. Raises NoFormError."""
    text, codec = _read(response)
    root = _parsed(text, response.url)
    form = _form(root, response.url, fields, selector)
    names = {_name(form, field): value for field, value in fields.items()}
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
    """Return whether a page has a form that `filled` would fill."""
    try:
        _form(_parsed(_read(response)[0], response.url), response.url, fields, selector)
    except NoFormError:
        return False
    return True


def _read(response: Response) -> tuple[str, str]:
    """Return the text of a page, and its encoding."""
    declared = (response.headers.get(b"Content-Type") or b"").decode("latin-1")
    return decode(response.body, charset_parameter(declared), markup=True)


def _parsed(text: str, url: str) -> lxml.html.HtmlElement:
    try:
        root = lxml.html.document_fromstring(
            text.encode("utf-8", "replace"), parser=lxml.html.HTMLParser(encoding="utf-8"), base_url=url
        )
    except etree.ParserError as error:
        raise NoFormError(f"{shown(url)} is no page: {printable(str(error))}") from error
    if (base := root.find(".//base[@href]")) is not None:
        root.getroottree().docinfo.URL = target_of(url, base.get("href")) or url
    return root


def _form(root: lxml.html.HtmlElement, url: str, fields: Mapping[str, str], selector: str) -> FormElement:
    forms = list(root.forms)
    if selector:
        chosen = root.cssselect(selector)
        forms = [form for form in forms if any(form is one or form in one.iterancestors() for one in chosen)]
        if not forms:
            raise NoFormError(f"{shown(url)} has no form at {quoted(selector)}")
    for form in forms:
        if all(_has(form, field) for field in fields):
            return form
    wanted = ", ".join(map(quoted, fields))
    has = "; ".join(map(_shown, forms[:_MOST_SHOWN]))
    raise NoFormError(f"{shown(url)} has no form with {wanted}: " + (f"its forms have {has}" if forms else "it has no form"))


def _has(form: FormElement, field: str) -> bool:
    return bool(field in _names(form) or _selected(form, field))


def _name(form: FormElement, field: str) -> str:
    return field if field in _names(form) else next(iter(_selected(form, field)), field)


def _selected(form: FormElement, selector: str) -> Iterator[str] | list[str]:
    try:
        return [one.get("name") for one in form.cssselect(selector) if one.get("name")]
    except etree.XPathError:
        return []
    except Exception as error:
        if type(error).__module__.startswith("cssselect"):
            return []
        raise


def _names(form: FormElement) -> list[str]:
    return [one.get("name") for one in form.xpath(".//input | .//select | .//textarea") if one.get("name")]


def _shown(form: FormElement) -> str:
    return printable(", ".join(_names(form)[:_MOST_SHOWN]) or "no fields")
