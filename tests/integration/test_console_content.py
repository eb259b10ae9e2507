"""Contents that the console serves: whole, in ranges, by token and by links that expire."""

from __future__ import annotations

import gzip
from urllib.parse import quote

import pytest

from crawlspace.clock import FakeClock
from crawlspace.console.users import Role, Users
from crawlspace.urls import document_id
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, served
from tests.integration.stored import ARCHIVED, collection
from tests.sites import Answer, Site, page, serve, status

SCRIPT = "<script>alert(1)</script>"
ZIPPED = gzip.compress(b"<title>Zipped</title><p>words that were sent zipped")


@pytest.fixture
def urls() -> list[str]:
    return []


@pytest.fixture
def demo(project: MakeProject, urls: list[str]) -> Project:
    site = Site(
        {
            "/": page("Home", links=["/zipped"], text=SCRIPT),
            "/zipped": Answer(200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, ZIPPED),
            "/robots.txt": status(404),
        }
    )
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        urls += [server.url("/"), server.url("/zipped")]
    return demo


def test_a_content_by_id_and_by_url(demo: Project, urls: list[str]) -> None:
    home, _ = urls
    with served(demo) as browser:
        found = browser.get(f"/content/{document_id(home)}")
        assert "&lt;script&gt;" in found.text
        assert found.headers["Content-Disposition"] == "attachment"
        assert found.headers["Content-Security-Policy"].startswith("sandbox")
        assert found.headers["Content-Type"].startswith("text/html")
        length = int(found.headers["Content-Length"])
        assert length == len(found.text.encode())
        assert browser.get(f"/content?collection=demo&url={quote(home)}").text == found.text
        etag = {"If-None-Match": found.headers["ETag"]}
        assert browser.get(f"/content/{document_id(home)}", headers=etag).status == 304
        for path, code in (
            ("/content/nope", 404),
            (f"/content/{'0' * 32}", 404),
            ("/content?collection=demo&url=http://x.example/", 404),
            ("/content?url=http://x.example/", 400),
            ("/content?collection=nope&url=http://x.example/", 404),
            ("/content?collection=demo&url=%22", 400),
            ("/content/..%2f..%2fetc%2fpasswd", 404),
        ):
            answer = browser.get(path)
            assert (answer.status, "error" in str(answer.json())) == (code, True), path


def test_ranges(demo: Project, urls: list[str]) -> None:
    path = f"/content/{document_id(urls[0])}"
    with served(demo) as browser:
        whole = browser.get(path).text.encode()
        size = len(whole)

        def part(wanted: str, **more: str) -> tuple[int, bytes, str | None]:
            got = browser.get(path, headers={"Range": wanted, **{k.replace("_", "-"): v for k, v in more.items()}})
            return got.status, got.text.encode(), got.headers["Content-Range"]

        assert part("bytes=0-9") == (206, whole[:10], f"bytes 0-9/{size}")
        assert part("bytes=10-") == (206, whole[10:], f"bytes 10-{size - 1}/{size}")
        assert part("bytes=-5") == (206, whole[-5:], f"bytes {size - 5}-{size - 1}/{size}")
        assert part("bytes=5-999999") == (206, whole[5:], f"bytes 5-{size - 1}/{size}")
        assert part(f"bytes={size}-") == (416, b"", f"bytes */{size}")
        assert part("bytes=9-3") == (416, b"", f"bytes */{size}")
        assert part("bytes=0-9", If_Range='"another"') == (200, whole, None)
        huge = "9" * 5_000
        for unread in ("bytes=", "bytes=-", "bytes=a-b", "bytes=0-1,3-4", "pages=1-2", f"bytes={huge}-", f"bytes=0-{huge}"):
            assert part(unread) == (200, whole, None), unread


def test_an_encoded_content_is_sent_as_it_came(demo: Project, urls: list[str]) -> None:
    path = f"/content/{document_id(urls[1])}"
    with served(demo) as browser:
        assert browser.get(path).status == 406
        assert browser.get(path, headers={"Accept-Encoding": "gzip;q=0, br"}).status == 406
        refused = browser.get(path, headers={"Accept-Encoding": "br"})
        assert "Accept-Encoding: gzip" in str(refused.json())
        zipped = browser.get_bytes(path, {"Accept-Encoding": "br, gzip"})
        assert zipped == ZIPPED


def test_who_may_have_a_content(demo: Project, urls: list[str]) -> None:
    users = Users(demo.data / "console-users")
    users.set_password("anna", "correct horse battery", Role.VIEWER)
    token, id = users.add_token("worker", Role.VIEWER), document_id(urls[0])
    clock = FakeClock()
    with served(demo, clock=clock) as browser:
        assert browser.get(f"/content/{id}").status == 401
        assert browser.get(f"/content/{id}/link").status == 401
        worker = Browser(browser.base, {"Authorization": f"Bearer {token}"})
        assert worker.get(f"/content/{id}").status == 200
        answer = worker.get(f"/content/{id}/link?collection=demo&seconds=60").json()
        assert isinstance(answer, dict)
        path = answer["path"]
        assert browser.get(path).status == 200, "the link needs no log-in"
        other = document_id(urls[1])
        forged = [
            path.replace(id, other),
            path.replace(f"/{id}", ""),
            f"{path}&url={quote(urls[1])}",
            f"{path}&url=",
            f"{path}&id={other}",
            path.replace("?", f"?url={quote(urls[1])}&"),
            path.replace(f"/{id}", "") + f"&url={quote(urls[1])}",
            path.replace("?", "?collection=other&"),
            path.replace("collection=demo&", ""),
            path.replace("collection=demo", "collection="),
            path.replace("collection=demo", "collection=other"),
            path.replace("expires=1", "expires=2"),
            path[:-1] + ("0" if path[-1] != "0" else "1"),
            path.partition("signature=")[0] + "signature=",
            path.replace("expires=", "expires=%2B"),
        ]
        assert [browser.get(one).status for one in forged] == [401] * len(forged)
        found = worker.get(f"/content/{id}/link").json()
        assert isinstance(found, dict)
        assert "collection=demo" in found["path"], "the collection is signed even if nobody has named it"
        assert worker.get(f"/content/{'0' * 32}/link").status == 404
        assert worker.get(f"/content/{id}?collection=demo&url={quote(urls[1])}").status == 400, "one document, not two"
        assert worker.get(f"/content/{id}/link?seconds=0").status == 400
        assert worker.get(f"/content/{id}/link?seconds=99999999").status == 400
        clock.advance(61)
        assert browser.get(path).status == 401, "it has expired"
    assert (demo.data / "console-key").stat().st_mode & 0o077 == 0
    with served(demo, clock=FakeClock()) as browser:
        assert browser.get(path).status == 200, "a restart ends no link"
    (demo.data / "console-key").write_bytes(b"short")
    with served(demo, clock=FakeClock()) as browser:
        assert browser.get(path).status == 503


def test_a_damaged_record_is_not_taken_for_whole(demo: Project, urls: list[str]) -> None:
    for file in (demo.data / "demo" / "archive").glob("*.warc.gz"):
        file.write_bytes(file.read_bytes()[:200])
    with served(demo) as browser:
        assert browser.get(f"/content/{document_id(urls[0])}").status == 404
