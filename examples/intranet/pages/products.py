"""http://127.0.0.2:8942/: the catalogue, with duplicates, files that are not what they say, and pages that fail."""

from __future__ import annotations

from examples.intranet.pages import Answer, binary, error, page, redirect

_P100 = page(
    "P100 circulation pump",
    "<p>A quiet pump for heating circuits up to 40 kW. Stainless steel shaft, ceramic seal, five years of guarantee.</p>",
)
_V7 = page(
    "V7 ball valve",
    "<p>Full bore, brass, for water up to 90 degrees. Opens with a quarter turn and closes with a click.</p>",
    head='<link rel="canonical" href="http://127.0.0.2:8942/valves/v7-ball-valve.html">',
)
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" + bytes(40)
_ZIP = b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(60)
_ELF = b"\x7fELF\x02\x01\x01\x00" + bytes(64)

PRODUCTS: dict[str, Answer] = {
    "/": page(
        "Products",
        """<p>What we build: <a href="//127.0.0.2:8942/pumps/">pumps</a> and <a href="/valves/">valves</a>.</p>
<ul>
<li><a href="/release-notes">Release notes</a>, <a href="/catalogue">catalogue</a>
<li><a href="/photo">Photograph</a>, <a href="/price-list">price list</a>, <a href="/firmware">firmware</a>
<li><a href="/configurator">Configurator</a>, <a href="/stock">stock</a>, <a href="/orders">orders</a>,
 <a href="/quotes">quotes</a>, <a href="/fax">fax</a>
</ul>""",
    ),
    "/pumps/": page(
        "Pumps",
        """<p><a href="p100-print.html">P100 (print)</a>, <a href="p100.html">P100</a>, <a href="p200.html">P200</a>,
<a href="p60.html">P60</a>, <a href="p50.html">P50, discontinued</a>, <a href="P300">P300</a></p>""",
    ),
    "/pumps/p100.html": _P100,
    "/pumps/p100-print.html": _P100,
    "/pumps/p200.html": page(
        "P200 submersible pump",
        "<p>For wells down to sixty metres. The impeller was computed, then carved, then computed again.</p>",
    ),
    "/pumps/P300": redirect("/pumps/p300.html", 308),
    "/pumps/p300.html": page("P300 dosing pump", "<p>Drop by drop, four hundred times a minute, for dairies.</p>"),
    "/pumps/p50.html": error(410, "The P50 has been discontinued."),
    "/valves/": page("Valves", '<p>The <a href="/v7">V7</a> (<a href="v7-ball-valve.html">details</a>) closes tight.</p>'),
    "/valves/v7-ball-valve.html": _V7,
    "/v7": _V7,
    "/release-notes": Answer(
        "Release notes\n\n4.2  The display shows litres again.\n4.1  The display showed gallons.\n",
        headers=(("Content-Type", "text/plain; charset=utf-8"),),
    ),
    "/catalogue": Answer(
        "<!doctype html><html lang=en><title>Catalogue</title><body><h1>Catalogue</h1><p>Sent without a type by an old server."
        '<p><a href="/">Products</a></body></html>',
        headers=(),
    ),
    "/photo": binary(_PNG, "text/html"),
    "/price-list": binary(_ZIP, "application/zip"),
    "/firmware": binary(_ELF, "application/octet-stream"),
    "/configurator": error(500, "The configurator has lost its database."),
    "/stock": error(503, "The warehouse does not answer."),
    "/orders": error(503, "Closed for stock-taking.", (("Retry-After", "1"),)),
    "/quotes": Answer(
        "<p>One moment, please.</p>",
        429,
        (("Content-Type", "text/html"), ("Retry-After", "1")),
        times=1,
        afterwards=page("Quotes", "<p>A quote takes two working days; three if the customer wants it in green.</p>"),
    ),
    "/fax": Answer(reset=True),
}
