"""Attributes of the user's own choice that hold links, besides those of HTML: `img@src`, `*@data-url`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

ANY = "*"
"""In place of the element: each one."""
MARK = "@"
"""In place of the name of a tag that may have such an attribute; no element is called so."""
_HAVE_REL = frozenset({"a", "area", "form", "link"})
"""Elements of which `rel` is about the link."""


class LinkAttributes:
    """Pairs of element and attribute, in small letters. False if there are none."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        of: defaultdict[str, list[str]] = defaultdict(list)
        for element, attribute in sorted(set(pairs)):
            of[element].append(attribute)
        self._of_any = of.pop(ANY, [])
        self._of = dict(of)
        self._attributes = sorted({name for names in (self._of_any, *self._of.values()) for name in names})
        self.of_scripts = bool(self._of_any) or not self._of.keys().isdisjoint(("script", "style"))
        """Whether scripts or styles may have one."""

    def __bool__(self) -> bool:
        return bool(self._attributes)

    def may_be_in(self, html: str) -> bool:
        """Return False if the page has none of the attributes: it is read as if there were no pairs."""
        return self._is_any_in(html)

    def marked(self, names: Sequence[str], attributes: Sequence[str]) -> list[str]:
        """Return the names of tags, with MARK for each start tag that may have one of its attributes."""
        marked = list(names)
        for at, written in enumerate(attributes):
            name = names[at]
            if written and name[:1] != "/" and (self._of_any or name in self._of) and self._is_any_in(written):
                marked[at] = MARK
        return marked

    def links(self, name: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
        """Yield the links of a tag as written, and whether they must not be followed."""
        nofollow = name in _HAVE_REL and "nofollow" in attributes.get("rel", "").lower().split()
        for attribute in (*self._of.get(name, ()), *self._of_any):
            if attribute in attributes:
                yield attributes[attribute], nofollow

    def _is_any_in(self, text: str) -> bool:
        lower = text.lower()
        return any(name in lower for name in self._attributes)


NO_OTHERS = LinkAttributes()
