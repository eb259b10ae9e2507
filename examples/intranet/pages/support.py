"""http://localhost:8943/: the help desk, and a wiki that has grown without a gardener."""

from __future__ import annotations

from examples.intranet.pages import Answer, page

_DEEPEST = 8


def _revision(number: int) -> Answer:
    older = f'<a href="/wiki/history/{number + 1}">older</a>' if number < _DEEPEST else "the first one"
    return page(f"Revision {number} of the front page", f"<p>Changed {number} times since breakfast; {older}.</p>")


def _more(times: int) -> Answer:
    """A relative link that leads one folder deeper each time, as a wiki behind a careless rewrite rule has it."""
    return page(f"More, {times} times", f'<p>There is always <a href="more/">more</a> than {times}.</p>')


SUPPORT: dict[str, Answer] = {
    "/": page(
        "Support",
        """<p>Call 4711 or look it up: <a href="/faq.html">questions and answers</a>, <a href="/status.html">status</a>,
<a href="/wiki/">the wiki</a>, <a href="/tickets/42">ticket 42</a>.</p>""",
    ),
    "/faq.html": page(
        "Questions and answers",
        """<h2>The pump hums but does not turn</h2><p>Close the valve, wait a minute, open it slowly. It is air in the line.</p>
<h2>The display shows gallons</h2><p>Install release 4.2.</p>""",
    ),
    "/status.html": page("Status", '<p>All systems, at a glance.</p><iframe src="/widget.html" title="lights"></iframe>'),
    "/widget.html": Answer("<!doctype html><html lang=en><title>Lights</title><p>Mail: green. Coffee: amber.</html>"),
    "/tickets/42": page("Ticket 42", "<p>The pump in the aquarium of the foyer is too loud. Assigned to Anna Lindqvist.</p>"),
    "/wiki/": page(
        "Wiki",
        """<ul>
<li><a href="/wiki/Pump_maintenance">Pump maintenance</a>, <a href="./x/../Pump_maintenance#oil">about oil</a>
<li><a href="/wiki/%C3%9Cberdruck">Überdruck</a>, <a href="/wiki/Überdruck">once more</a>
<li><a href="/wiki/tips and tricks">Tips and tricks</a>
<li><a href="/wiki/%7eanna">Anna's corner</a>, <a href="/wiki/~anna">the same</a>
<li><a href="/wiki/more/">More</a>, <a href="/wiki/history/1">history</a>
<li><a href="http://LOCALHOST:8943/wiki/shouting">A page somebody linked in capitals</a>
</ul>""",
    ),
    "/wiki/Pump_maintenance": page(
        "Pump maintenance", "<p id=oil>Change the oil every two thousand hours. Listen to the bearings before and after.</p>"
    ),
    "/wiki/%C3%9Cberdruck": page(
        "Überdruck",
        "<p>Bei Überdruck öffnet das Sicherheitsventil von selbst; danach bitte den Kundendienst rufen.</p>",
        lang="de",
    ),
    "/wiki/tips%20and%20tricks": page("Tips and tricks", "<p>A screwdriver held to the ear is a stethoscope.</p>"),
    "/wiki/~anna": page("Anna's corner", "<p>Sounds of pumps, sorted by illness.</p>"),
    "/wiki/shouting": page("Shouting", "<p>Only linked in capital letters.</p>"),
    **{"/wiki/" + "more/" * times: _more(times) for times in range(1, 6)},
    **{f"/wiki/history/{number}": _revision(number) for number in range(1, _DEEPEST + 1)},
}
