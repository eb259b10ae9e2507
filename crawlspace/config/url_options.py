"""The settings of what is one URL, for a collection and for single sites: which spellings of a page's address, and which routes behind #."""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.errors import SettingError
from crawlspace.parsing import boolean, one_of, words
from crawlspace.rules.url_options import SESSION_SEGMENT, Folding, UrlOptions
from crawlspace.settings import CRAWLSPACE_URL_DROP_PATH_PARAMETERS
from crawlspace.text import quoted

SORT_QUERY = "CRAWLSPACE_URL_SORT_QUERY"
DROP_PARAMETERS = "CRAWLSPACE_URL_DROP_PARAMETERS"
DROP_PATH_PARAMETERS = "CRAWLSPACE_URL_DROP_PATH_PARAMETERS"
TRAILING_SLASH = "CRAWLSPACE_URL_TRAILING_SLASH"
FOLD_WWW = "CRAWLSPACE_URL_FOLD_WWW"
HASH_ROUTES = "CRAWLSPACE_HASH_ROUTES"
SITE_KEYS = (
    *("url_sort_query", "url_drop_parameters", "url_drop_path_parameters", "url_trailing_slash", "url_fold_www"),
    "hash_routes",
)
"""The same in CRAWLSPACE_SITES."""
_NOT_IN_NAMES = frozenset("=&?# ")
_NOT_IN_PATH_NAMES = frozenset("=;/?#() ")


def read_url_options(settings: Mapping[str, object]) -> UrlOptions:
    """Return the options of the collection. Raises SettingError."""
    return UrlOptions(
        sort_query=boolean(SORT_QUERY, settings[SORT_QUERY]),
        drop_parameters=_parameters(DROP_PARAMETERS, settings[DROP_PARAMETERS]),
        drop_path_parameters=_path_parameters(DROP_PATH_PARAMETERS, settings[DROP_PATH_PARAMETERS]),
        trailing_slash=_folding(TRAILING_SLASH, settings[TRAILING_SLASH]),
        www=_folding(FOLD_WWW, settings[FOLD_WWW]),
        hash_routes=boolean(HASH_ROUTES, settings[HASH_ROUTES]),
    )


def read_site_options(where: str, values: Mapping[object, object], default: UrlOptions) -> UrlOptions:
    """Return the options of a site: those in its entry of CRAWLSPACE_SITES, and the collection's for the others. Raises SettingError."""
    sort, drop, drop_of_path, slash, www, routes = SITE_KEYS
    return UrlOptions(
        sort_query=boolean(f"{where}['{sort}']", values.get(sort, default.sort_query)),
        drop_parameters=_parameters(f"{where}['{drop}']", values.get(drop, default.drop_parameters)),
        drop_path_parameters=_path_parameters(
            f"{where}['{drop_of_path}']", values.get(drop_of_path, default.drop_path_parameters)
        ),
        trailing_slash=_folding(f"{where}['{slash}']", values.get(slash, default.trailing_slash)),
        www=_folding(f"{where}['{www}']", values.get(www, default.www)),
        hash_routes=boolean(f"{where}['{routes}']", values.get(routes, default.hash_routes)),
    )


def _folding(name: str, value: object) -> Folding:
    return Folding(one_of(name, value, tuple(Folding)))


def _parameters(name: str, value: object) -> tuple[str, ...]:
    """Return names of parameters, sorted. Raises SettingError."""
    found = words(name, value, separators=", |")
    wrong = next((word for word in found if not _NOT_IN_NAMES.isdisjoint(word)), None)
    if wrong is not None:
        raise SettingError(f'{name} has {quoted(wrong)}; it must hold names of parameters, as in ["sessionid", "utm_*"]')
    return tuple(sorted(set(found)))


def _path_parameters(name: str, value: object) -> tuple[str, ...]:
    """Return names of parameters in a path, sorted and in lower case, and SESSION_SEGMENT as it is. Raises SettingError."""
    found = words(name, value, separators=", |")
    wrong = next((word for word in found if not _NOT_IN_PATH_NAMES.isdisjoint(word.replace(SESSION_SEGMENT, ""))), None)
    if wrong is not None:
        raise SettingError(
            f'{name} has {quoted(wrong)}; it must hold names of parameters in a path, as in ["jsessionid", "sid"], or "{SESSION_SEGMENT}"'
        )
    return tuple(sorted({word if word == SESSION_SEGMENT else word.lower() for word in found}))


BUILT_IN_PATH_PARAMETERS = _path_parameters(DROP_PATH_PARAMETERS, CRAWLSPACE_URL_DROP_PATH_PARAMETERS)
