"""Log-ins by Kerberos: what the process is prepared with. That libcurl and a key server agree is shown with real ones."""

from __future__ import annotations

from pathlib import Path

import pycurl
import pytest
from scrapy import Request

from crawlspace.config.access import SiteAccess, read_site_access
from crawlspace.errors import SettingError
from crawlspace.runtime.components.requests import NEGOTIATE
from crawlspace.runtime.http import negotiate as module
from crawlspace.runtime.http.errors import LoggedOutError
from crawlspace.runtime.http.negotiate import failure_in, is_passing, is_unknown_service, prepare_negotiate
from tests.unit.runtime.http.fetching import PAGE, crawling, serving

UNAUTHORIZED = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 3\r\n\r\nwho"


def entry(pattern: str = "wiki.example.com", **login: str) -> SiteAccess:
    access = read_site_access("X", pattern, {"login": {"type": "negotiate", **login}})
    assert access is not None
    return access


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "krb5.conf"
    monkeypatch.setattr(module, "USUAL_CONFIGURATION", file)
    return file


def keytab(file: Path) -> str:
    file.write_bytes(b"\x05\x02")
    return str(file)


def test_what_a_process_is_prepared_with(tmp_path: Path, configuration: Path) -> None:
    environment: dict[str, str] = {}
    prepare_negotiate([], environment=environment, features=0)
    prepare_negotiate([entry()], environment=environment)
    assert environment == {}
    configuration.touch()
    prepare_negotiate([entry()], environment=environment)
    assert environment == {"KRB5_CONFIG": str(configuration)}
    own = keytab(tmp_path / "a.keytab")
    for _ in range(2):
        prepare_negotiate([entry(keytab=own), entry("other.example.com")], environment=environment)
    assert environment == {
        "KRB5_CONFIG": str(configuration),
        "KRB5_CLIENT_KTNAME": f"FILE:{own}",
        "KRB5CCNAME": "MEMORY:crawlspace",
    }


def test_what_cannot_log_in(tmp_path: Path, configuration: Path) -> None:
    own, other, none = keytab(tmp_path / "a.keytab"), keytab(tmp_path / "b.keytab"), tmp_path / "c.keytab"
    none.write_text("no keytab")
    rows = [
        ([entry()], 0, "CRAWLSPACE_SITES['wiki.example.com'] logs in by Kerberos, and the libcurl of this pycurl has no GSS-API"),
        ([entry(keytab="nowhere")], None, "['login']['keytab'] is 'nowhere', which cannot be read: No such file"),
        ([entry(keytab=str(none))], None, "which is no keytab"),
        ([entry(keytab=own), entry("b.example.com", keytab=other)], None, "and this process logs in with another keytab"),
    ]
    for entries, features, told in rows:
        with pytest.raises(SettingError) as raised:
            prepare_negotiate(entries, environment={}, features=features)
        assert told in str(raised.value)


def test_the_wheel_of_pycurl_speaks_it() -> None:
    assert pycurl.version_info()[4] & (pycurl.VERSION_GSSAPI | pycurl.VERSION_SSPI)


NO_TICKET = "No Kerberos credentials available (default cache: FILE:/none)"
UNKNOWN = "Server HTTP/a.example@EXAMPLE not found in Kerberos database"
NONE = "No credentials were supplied, or the credentials were unavailable or inaccessible."
TEXTS = [
    # what libcurl traces, why the log-in fails, whether the key server does not know the site, whether it may pass by itself
    (f"gss_acquire_cred() failed: {NONE} {NO_TICKET}. \n", NO_TICKET, False, True),
    ("gss_init_sec_context() failed: Ticket expired. \n", "Ticket expired", False, True),
    ("gss_init_sec_context() failed: Clock skew too great. \n", "Clock skew too great", False, True),
    ("gss_acquire_cred() failed: Cannot contact any KDC for realm 'E'. ", "Cannot contact any KDC for realm 'E'", False, True),
    ("gss_acquire_cred() failed: Cannot find KDC for realm \"E\". ", "Cannot find KDC for realm \"E\"", False, True),
    ("gss_acquire_cred() failed: Preauthentication failed. ", "Preauthentication failed", False, False),
    (f"gss_init_sec_context() failed: {UNKNOWN}. ", UNKNOWN, True, False),
    ("gss_acquire_cred() failed: Client 'crawler@EXAMPLE' not found in Kerberos database. ", "Client 'crawler@EXAMPLE' not found in Kerberos database", False, False),
    ("Server auth using Negotiate with user ''\n", "", False, False),
]  # fmt: skip


@pytest.mark.parametrize(("traced", "why", "is_unknown", "passes"), TEXTS)
def test_why_it_fails(traced: str, why: str, is_unknown: bool, passes: bool) -> None:
    assert (failure_in(traced.encode()), is_unknown_service(why), is_passing(why)) == (why, is_unknown, passes)


@pytest.mark.parametrize("answer", [UNAUTHORIZED, PAGE], ids=["401", "200"])
async def test_without_a_ticket_no_answer_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    """After one request, and none soon after it."""
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'none'}")
    monkeypatch.setenv("KRB5_CONFIG", "/dev/null")
    async with serving([answer], [PAGE]) as server, crawling() as crawl:
        for _ in range(2):
            with pytest.raises(LoggedOutError, match=f"the log-in by Kerberos at 127.0.0.1:{server.port} fails: No Kerberos"):
                await crawl.fetch(Request(server.url(), meta={NEGOTIATE: True}))
        assert len(server.requests) == 1
        assert (await crawl.fetch(server.url())).body == b"abc"
