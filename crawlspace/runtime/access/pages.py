"""The pages of a log-in: their links, their forms as a browser sends them, and the signs of a logged-out page.

Every page of a site may be its log-in page, so each is searched for the form of the log-in. A hostile page must not make that slow: only so
many of its tags, texts and attributes make a tree (libxml2 needs a minute for a tag with 100,000 attributes).

Scrapy's `FormRequest.from_response` is deprecated. It sends disabled fields, and fails where a value is not in the encoding of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

import lxml.html
from cssselect import SelectorError
from lxml import etree
from lxml.html import FormElement
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from crawlspace.config.access import FormLogin, SessionLogin
from crawlspace.content.charset import charset_parameter, codec_of, decode, encoded, in_encoding, label_of
from crawlspace.content.markup import first_attributes, tokens
from crawlspace.runtime.http.headers import location_of
from crawlspace.text import printable, quoted
from crawlspace.urls import DEFAULT_PORTS

_BUTTONS = ".//input[@type='submit' or @type='image'][@name] | .//button[not(@type) or @type='submit'][@name]"
_MOST_SHOWN = 10
"""Forms, and fields of one, in a message."""
_MOST_BYTES = 2_000_000
"""Of a page that is searched for signs; log-in pages are short."""
_MOST_TAGS, _MOST_TEXT, _MOST_DEPTH = 10_000, 500_000, 200
"""Of a tree; characters of texts and attributes; elements within each other, which a selector such as `div div div` compares."""
_MOST_ATTRIBUTES, _ORDINARY_TAG = 50, 200
"""Of one tag; characters of attributes that are not counted."""
_WORD = re.compile(r"[\w$-]+")
_END_BY_THEMSELVES = frozenset(
    "area base br col dd dt embed hr img input li link meta optgroup option p select source tbody td textarea tfoot th thead tr track wbr".split()
)
_NO_TEXT = frozenset({"/script", "/style", "/iframe", "/xmp", "/noembed", "/noframes"})


# --- where a log-in leads ---------------------------------------------------------------------------------------------


def target_of(base: str, reference: str) -> str:
    """Return the URL that a reference on a page or in a redirect leads to; empty for one that is none on the web."""
    try:
        target = urljoin(base, reference)
        parts = urlsplit(target)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    return target if is_usable else ""


def shown(url: str) -> str:
    """Return a URL for a message: without its query, which may hold secrets."""
    return printable(_without_query(url)) + ("?…" if "?" in url else "")


def port_of(url: str) -> int:
    """Return the port that a URL of the web leads to; 0 where it leads to none."""
    try:
        parts = urlsplit(url)
        return parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return 0


def host_shown(url: str) -> str:
    """Return the host of a URL for a message, with its port unless that is the one of its scheme."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return printable(host if port_of(url) in {0, DEFAULT_PORTS.get(parts.scheme)} else f"{host}:{port_of(url)}")


def _without_query(url: str) -> str:
    try:
        return urlsplit(url)._replace(query="", fragment="").geturl()
    except ValueError:
        return url.partition("?")[0].partition("#")[0]


# --- forms ------------------------------------------------------------------------------------------------------------


class NoFormError(Exception):
    """A page has no form as it is expected; the message has the forms that there are."""


class LoginPage:
    """The beginning of a page, without its scripts."""

    def __init__(self, response: Response) -> None:
        self._response, self._url = response, response.url

    def filled(self, fields: Mapping[str, str], *, selector: str = "") -> Request:
        """Return the request of the form with these fields, given by name or by CSS selector. Raises NoFormError.

        It has the hidden fields, those that are filled already, and the first button (HTML, 4.10.21), in the encoding of the page or in
        the one that the form asks for.
        """
        form, names = self._form(fields, selector)
        given = {names[field]: value for field, value in fields.items()}
        values = [(name, value) for name, value in form.form_values() if name not in given]
        values += given.items()
        values += [(one.get("name"), one.get("value") or "") for one in form.xpath(_BUTTONS)[:1] if one.get("name") not in given]
        page_codec = self._read[1]
        reference = in_encoding((form.get("action") or "").strip(), page_codec)
        action = target_of(self._root.base_url or self._url, reference or self._url)
        if not action:
            raise NoFormError(f"{shown(self._url)} has a form that is sent to {quoted(reference)}, which is no URL of the web")
        codec = next(filter(None, map(codec_of, (form.get("accept-charset") or "").split())), page_codec)
        named = ((name, label_of(codec) if name == "_charset_" else value) for name, value in values)
        data = urlencode([(encoded(name, codec), encoded(value, codec)) for name, value in named])
        if form.method != "POST":
            return Request(urlunsplit(urlsplit(action)._replace(query=data, fragment="")))
        return Request(action, method="POST", body=data, headers={"Content-Type": "application/x-www-form-urlencoded"})

    def has_form(self, fields: Mapping[str, str], *, selector: str = "") -> bool:
        """Return whether there is a form that `filled` would fill."""
        text = self._read[0].lower()
        if "&#" not in text and not all(field.lower() in text for field in fields if _WORD.fullmatch(field)):
            return False
        try:
            self._form(fields, selector)
        except NoFormError:
            return False
        return True

    def selects(self, selector: str) -> list[lxml.html.HtmlElement]:
        """Return the elements that a CSS selector selects; none where it is no selector, or the page is empty."""
        try:
            return list(self._root.cssselect(selector))
        except (NoFormError, SelectorError, etree.XPathError):
            return []

    def _form(self, fields: Mapping[str, str], selector: str) -> tuple[FormElement, dict[str, str]]:
        """Return the first form that has all fields, and their names."""
        forms = {form: list(dict.fromkeys(one.name for one in form.inputs if one.name)) for form in self._root.forms}
        if selector:
            chosen = {_form_of(element) for element in self.selects(selector)}
            forms = {form: names for form, names in forms.items() if form in chosen}
            if not forms:
                raise NoFormError(f"{shown(self._url)} has no form at {quoted(selector)}")
        selected = {field: self._names_selected(field) for field in fields if not all(field in names for names in forms.values())}
        for form, names in forms.items():
            found = {field: field if field in names else selected[field].get(form, "") for field in fields}
            if all(found.values()):
                return form, found
        has = "; ".join(printable(", ".join(names[:_MOST_SHOWN]) or "no fields") for names in islice(forms.values(), _MOST_SHOWN))
        wanted = ", ".join(map(quoted, fields))
        raise NoFormError(
            f"{shown(self._url)} has no form with {wanted}: " + (f"its forms have {has}" if forms else "it has no form")
        )

    def _names_selected(self, selector: str) -> dict[FormElement | None, str]:
        """Return the name of the first field that a selector selects in each form."""
        named = [(_form_of(element), name) for element in self.selects(selector) if (name := element.get("name"))]
        return dict(reversed(named))

    @cached_property
    def _read(self) -> tuple[str, str]:
        """The text, and the codec it was read with."""
        declared = (self._response.headers.get(b"Content-Type") or b"").decode("latin-1")
        return decode(self._response.body, charset_parameter(declared), markup=True)

    @cached_property
    def _root(self) -> lxml.html.HtmlElement:
        parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
        written = "".join(_bounded(self._read[0])).encode("utf-8", "replace")
        try:
            root = lxml.html.document_fromstring(written, parser=parser, base_url=self._url)
        except etree.ParserError as error:
            raise NoFormError(f"{shown(self._url)} is no page: {printable(str(error))}") from error
        if (base := root.find(".//base[@href]")) is not None:
            root.getroottree().docinfo.URL = target_of(self._url, base.get("href")) or self._url
        return root


def _form_of(element: lxml.html.HtmlElement) -> FormElement | None:
    """Return the form that an element is in, or is."""
    return element if element.tag == "form" else next(element.iterancestors("form"), None)


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
        attributes = written if len(written) <= _ORDINARY_TAG else first_attributes(written, _MOST_ATTRIBUTES)
        if len(attributes) <= left:
            left -= len(attributes)
            yield f"<{name} {attributes}>"


# --- signs of a logged-out page ---------------------------------------------------------------------------------------


class LoggedOut:
    """The signs of one log-in."""

    def __init__(self, login: SessionLogin) -> None:
        self._login, self._signs = login, login.logged_out
        self._address = "" if login.has_token or login.url is None else _without_query(login.url)
        self._form = login.steps[0] if isinstance(login, FormLogin) else None

    def is_login_address(self, url: str) -> bool:
        """Return whether a URL is that of the log-in page, with any query."""
        return bool(self._address) and _without_query(url) == self._address

    def sign(self, response: Response) -> str:
        """Return in a few words why a response looks logged out; empty if it does not."""
        signs = self._signs
        if response.status in self._login.statuses:
            return f"status {response.status}"
        if 300 <= response.status < 400:
            return self._redirects(response)
        if not (200 <= response.status < 300 and isinstance(response, TextResponse)) or len(response.body) > _MOST_BYTES:
            return ""
        if signs.text and signs.text in response.text:
            return f"the text {quoted(signs.text)}"
        if not isinstance(response, HtmlResponse):
            return ""
        page, form = LoginPage(response), self._form
        if signs.selector and page.selects(signs.selector):
            return f"what {quoted(signs.selector)} selects"
        if form is not None and b"password" in response.body.lower() and page.has_form(form.fields, selector=form.form):
            return "the form of the log-in"
        return ""

    def _redirects(self, response: Response) -> str:
        location = location_of(response.headers.get(b"Location"))
        target = target_of(response.url, location) if location else ""
        leads_to_login = self.is_login_address(target) or (self._signs.redirect and target.startswith(self._signs.redirect))
        return f"a redirect to {shown(target)}" if target and leads_to_login else ""
