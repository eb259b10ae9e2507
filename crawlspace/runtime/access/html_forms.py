"""HTML forms as a browser sends them: with hidden fields, those that are filled already, and the button that is pressed (HTML, 4.10.21)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit, urlunsplit

import lxml.html
from lxml import etree
from scrapy import Request
from scrapy.http import TextResponse

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
    root = _parsed(response)
    form = _form(root, response.url, fields, selector)
    names = {_name(form, field): value for field, value in fields.items()}
    values = [(name, value) for name, value in form.form_values() if name not in names]
    values += names.items()
    button = next((one for one in form.xpath(_BUTTONS) if one.get("name")), None)
    if button is not None and button.get("name") not in names:
        values.append((button.get("name"), button.get("value") or ""))
    base = root.base_url or response.url
    given = (form.get("action") or "").strip()
    action = target_of(target_of(response.url, base) or response.url, given or response.url)
    if not action:
        raise NoFormError(f"{shown(response.url)} has a form that is sent to {quoted(given)}, which is no URL of the web")
    encoded = urlencode(values, encoding=getattr(response, "encoding", "utf-8") or "utf-8", errors="xmlcharrefreplace")
    if (form.get("method") or "get").lower() != "post":
        return Request(urlunsplit(urlsplit(action)._replace(query=encoded, fragment="")))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return Request(action, method="POST", body=encoded.encode("ascii"), headers=headers)


def has_form(response: Response, fields: Mapping[str, str], *, selector: str = "") -> bool:
    """Return whether a page has a form that `filled` would fill."""
    try:
        _form(_parsed(response), response.url, fields, selector)
    except NoFormError:
        return False
    return True


def _parsed(response: Response) -> lxml.html.HtmlElement:
    body = response.text.encode() if isinstance(response, TextResponse) else response.body
    try:
        root = lxml.html.document_fromstring(body, parser=lxml.html.HTMLParser(encoding="utf-8"), base_url=response.url)
    except etree.ParserError as error:
        raise NoFormError(f"{shown(response.url)} is no page: {printable(str(error))}") from error
    if (base := root.find(".//base[@href]")) is not None:
        root.getroottree().docinfo.URL = target_of(response.url, base.get("href")) or response.url
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
