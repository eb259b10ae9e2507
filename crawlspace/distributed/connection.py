"""Connects to the Redis server of a collection, with the settings of scrapy-redis: REDIS_URL, REDIS_HOST, REDIS_PORT, REDIS_DB, REDIS_PARAMS."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from scrapy.settings import Settings

from crawlspace.config.secrets import STORE_URL, read_store_url
from crawlspace.distributed.server_check import REPLICA, ServerFault, ServerReport, faults, read_servers, refuse_old
from crawlspace.errors import SettingError, StoreAway, StoreError
from crawlspace.text import HIDDEN, printable

if TYPE_CHECKING:
    import redis
    from redis.retry import Retry

logger = logging.getLogger(__name__)

ANSWER_S = 10
"""Timeout of a server's reply to a worker."""


def connected(settings: Mapping[str, object], *, crawls: bool = False, fills: bool = False) -> redis.Redis:
    """Return a client for the server that CRAWLSPACE_STORE_URL names. Raises SettingError, StoreAway or StoreError.

    `crawls`: for a worker, which repeats unanswered calls itself, logs that, and can be stopped meanwhile. A worker, or a command that `fills`
    the store, refuses a server that would lose data; minor faults are logged.
    """
    from scrapy.settings import Settings  # noqa: PLC0415 - half a second that only those pay who share a collection

    from crawlspace.state.redis.server import UNREACHABLE, redis_errors  # noqa: PLC0415

    url = read_store_url(settings[STORE_URL])
    own = Settings(dict(settings))
    if url.partition("://")[2]:
        own.set("REDIS_URL", url)
    own.setdict({"REDIS_DECODE_RESPONSES": None, "REDIS_ENCODING": None})
    if crawls:
        own.set("REDIS_PARAMS", {**_impatience(own), **own.getdict("REDIS_PARAMS")})
    try:
        client = _by_sentinels(url, own) if url.startswith("sentinel://") else _by_settings(own)
    except (ValueError, TypeError, AttributeError, ImportError) as error:
        raise _wrong_settings(_without_parts_of_the_url(error)) from None
    try:
        with redis_errors():
            servers = read_servers(client)
        for server in servers:
            refuse_old(server)
        if crawls or fills:
            _refuse_or_warn(servers, by_sentinels=url.startswith("sentinel://"))
    except (TypeError, AttributeError, LookupError) as error:  # options of the URL, which the client reads when it connects
        client.close()
        raise _wrong_settings(_wrong_option(error)) from None
    except StoreAway as error:
        client.close()
        is_away = str(error).startswith(UNREACHABLE)
        advice = "start it, or set CRAWLSPACE_STORE_URL to where it is" if is_away else "try again when it is ready"
        raise StoreAway(f"{str(error).rstrip('.')}: {advice}") from error
    except BaseException:
        client.close()
        raise
    return client


def server_faults(settings: Mapping[str, object]) -> list[ServerFault]:
    """Return the faults of a collection's server. Raises as `connected`."""
    from crawlspace.state.redis.server import redis_errors  # noqa: PLC0415 - as above

    with closing(connected(settings)) as client, redis_errors():
        servers = read_servers(client)
    return list(dict.fromkeys(fault for server in servers for fault in faults(server)))


def _refuse_or_warn(servers: Sequence[ServerReport], *, by_sentinels: bool) -> None:
    for fault in dict.fromkeys(fault for server in servers for fault in faults(server)):
        if fault.code == REPLICA and by_sentinels:  # they are about to fail over
            raise StoreAway(fault.message)
        if fault.level == "error":
            raise StoreError(fault.message)
        logger.warning("%s", fault.message)


def _wrong_settings(fault: str) -> SettingError:
    return SettingError(
        f"Redis cannot be connected to with these settings: {fault}; see CRAWLSPACE_STORE_URL, REDIS_URL and REDIS_PARAMS"
    )


def _wrong_option(error: Exception) -> str:
    """Return what is wrong with an option; its value, which may be a secret, is not shown."""
    named = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if named:
        return f"there is no option {printable(named[1])!r}"
    return f"an option has a value that is not of its kind ({printable(error)})"


def _without_parts_of_the_url(error: Exception) -> str:
    """Return a client's message about settings without its quotations: it mistakes the beginning of a password with a slash for a port."""
    cited = re.compile(r"""'[^']*'|"[^"]*"|Port could not be cast.*""")
    return cited.sub(HIDDEN, str(error)) if isinstance(error, ValueError) else str(error)


def _impatience(settings: Settings) -> dict[str, object]:
    """Return the default client options of a worker: the client does not repeat unanswered calls."""
    options: dict[str, object] = {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S, "retry_on_timeout": False}
    if "redis_cls" not in settings.getdict("REDIS_PARAMS"):  # a cluster tries its other nodes
        options["retry"] = _once_more()
    return options


def _once_more() -> Retry:
    """Return a retry policy: repeat a call once, at once, if the connection is closed, perhaps after an idle timeout."""
    import redis  # noqa: PLC0415 - as above
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    return Retry(NoBackoff(), 1, (redis.ConnectionError,))


def _by_settings(settings: Settings) -> redis.Redis:
    from scrapy_redis.connection import get_redis_from_settings  # noqa: PLC0415 - as above

    client: redis.Redis = get_redis_from_settings(settings)
    return client


def _by_sentinels(url: str, settings: Settings) -> redis.Redis:
    """Return a client for the master of a service by Sentinels. Raises ValueError.

    The URL is `sentinel://:PASSWORD@HOST:PORT,HOST:PORT/SERVICE/DB`; user and password are the server's; all but hosts
    and service are optional. Those of the Sentinels are in REDIS_PARAMS, under `sentinel_kwargs`.
    """
    from redis.sentinel import Sentinel  # noqa: PLC0415 - as above
    from scrapy_redis.defaults import REDIS_PARAMS  # noqa: PLC0415

    parts = urlsplit(url)
    who, _, places = parts.netloc.rpartition("@")
    service, _, db = parts.path.strip("/").partition("/")
    named = [place.rpartition(":") if ":" in place else (place, "", "26379") for place in places.split(",")]
    if not (service and all(host and port.isdigit() for host, _, port in named) and (db or "0").isdigit()):
        raise ValueError("the URL must name Sentinels and a service, as in sentinel://one:26379,two:26379/mymaster/0")
    sentinels = [(host, int(port)) for host, _, port in named]
    params = {**REDIS_PARAMS, **settings.getdict("REDIS_PARAMS"), "db": int(db or 0)}
    if who:
        user, _, password = map(unquote, who.partition(":"))
        params |= {"username": user or None, "password": password}
    options = {name: value for name, value in params.items() if name.startswith("socket_")}
    of_sentinels = {**options, "retry": _once_more(), **(params.pop("sentinel_kwargs", None) or {})}  # there are others to try
    client: redis.Redis = Sentinel(sentinels, sentinel_kwargs=of_sentinels, **params).master_for(service)
    return client
